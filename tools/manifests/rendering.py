"""Renders the chart with `helm template`, and kustomize folders with `kubectl kustomize`."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tools.manifests.layouts import CHART, Values, merged

Manifest = dict[str, Any]

NAMESPACE = "moorage"

KUBERNETES = "1.36.1"
"""The version of kube-scheduler in deploy/kustomize; the chart takes the cluster's own."""

_CHECKSUMS = re.compile(r"^ +annotations:\n(?: +checksum/.*\n)+", re.MULTILINE)
_HASH = re.compile(r"^(kube-scheduler|settings|plugins|bind-plugins)-[a-z0-9]{10}$")


class Key(NamedTuple):
    """What names an object."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An object of a rendering: where it comes from, its text with comments, and what it says."""

    source: str
    text: str
    manifest: Manifest = field(repr=False)

    @property
    def key(self) -> Key:
        """What names it."""
        return key_of(self.manifest)


def key_of(manifest: Manifest) -> Key:
    """Return what names an object."""
    metadata = manifest["metadata"]
    return Key(manifest["kind"], metadata.get("namespace", ""), metadata["name"])


def render_chart(helm: Path, values: Values) -> list[Document]:
    """Return what the chart makes of values, without checksums: kustomize has hashes in names."""
    given = merged({"namespace": {"create": True}}, values)
    command = [str(helm), "template", "moorage", str(CHART), "--namespace", NAMESPACE]
    command += ["--kube-version", KUBERNETES, "--values", "-"]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"helm template: {done.stderr}")
    return list(map(_document, filter(str.strip, re.split(r"^---\n", done.stdout, flags=re.M))))


def render_kustomize(folder: Path) -> list[Manifest]:
    """Return what `kubectl kustomize` makes of a folder."""
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"kubectl kustomize {folder}: {done.stderr}")
    return list(yaml.safe_load_all(done.stdout))


def without_hashes(manifests: list[Manifest]) -> dict[Key, Manifest]:
    """Return objects by name, without the hashes of contents that kustomize adds to some names."""
    plain = [_plain(manifest) for manifest in manifests]
    return {key_of(manifest): manifest for manifest in plain}


def _document(text: str) -> Document:
    head, _, rest = text.partition("\n")
    source = head.removeprefix("# Source: moorage/templates/")
    rest = _CHECKSUMS.sub("", rest).rstrip() + "\n"
    return Document(source=source, text=rest, manifest=yaml.safe_load(rest))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    found = _HASH.match(value) if isinstance(value, str) else None
    return found[1] if found else value
