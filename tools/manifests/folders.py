"""The files of deploy/kustomize: base, a component for each option, an overlay for each layout."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from tools.manifests.difference import operations
from tools.manifests.rendering import Document, Key

Files = dict[PurePosixPath, str]

HEAD = "# Written by `make manifests` from deploy/chart/moorage: change it there.\n"

HASHED = ("kube-scheduler", "settings")
"""ConfigMaps that processes read at their start only: a hash in the name restarts them."""


def base(documents: list[Document]) -> Files:
    """Return the base: the chart with its default values."""
    files = _resources(documents)
    maps, contents = _config_maps(documents, {}, "")
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(map(str, files)),
        "configMapGenerator": maps,
    }
    return {**files, **contents, PurePosixPath("kustomization.yaml"): _yaml(kustomization)}


def component(documents: list[Document], before: Mapping[Key, Document]) -> Files:
    """Return the component that makes these documents of those before."""
    after = {document.key: document for document in documents}
    added = [document for document in documents if document.key not in before]
    files = _resources(added)
    maps, contents = _config_maps(documents, before, "merge")
    patches = [_deletion(document) for key, document in before.items() if key not in after]
    patches += [
        _patch(before[key], document)
        for key, document in after.items()
        if key in before and key.kind != "ConfigMap" and document.manifest != before[key].manifest
    ]
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": sorted(map(str, files)),
        "configMapGenerator": maps,
        "patches": patches,
    }
    given = {key: value for key, value in kustomization.items() if value}
    return {**files, **contents, PurePosixPath("kustomization.yaml"): _yaml(given)}


def overlay(components: Iterable[str]) -> Files:
    """Return the overlay with the base and components."""
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../../base"],
        "components": [f"../../components/{name}" for name in components],
    }
    given = {key: value for key, value in kustomization.items() if value}
    return {PurePosixPath("kustomization.yaml"): _yaml(given)}


def _resources(documents: Iterable[Document]) -> Files:
    texts: dict[str, list[str]] = {}
    for document in documents:
        if document.key.kind != "ConfigMap":
            texts.setdefault(document.source, []).append(document.text)
    return {PurePosixPath(source): HEAD + "---\n".join(each) for source, each in texts.items()}


def _config_maps(
    documents: Iterable[Document], before: Mapping[Key, Document], behavior: str
) -> tuple[list[Any], Files]:
    """Return what generates the ConfigMaps that are not there before, and their files."""
    maps, files = [], {}
    for document in documents:
        known = before.get(document.key)
        if document.key.kind != "ConfigMap" or (known and known.manifest == document.manifest):
            continue
        data = document.manifest["data"]
        generated: dict[str, Any] = {
            "name": document.key.name,
            "namespace": document.key.namespace,
        }
        if known:
            generated["behavior"] = behavior
        names = [name for name in data if "." in name]
        files.update({PurePosixPath(name): data[name] for name in names})
        literals = [f"{name}={value}" for name, value in data.items() if name not in names]
        generated |= {"files": names} if names else {}
        generated |= {"literals": literals} if literals else {}
        options: dict[str, Any] = {}
        if document.key.name not in HASHED:
            options["disableNameSuffixHash"] = True
        if labels := document.manifest["metadata"].get("labels"):
            options["labels"] = labels
        generated |= {"options": options} if options else {}
        maps.append(generated)
    return maps, files


def _deletion(document: Document) -> dict[str, Any]:
    manifest = document.manifest
    named = {"name": document.key.name, "namespace": document.key.namespace}
    patch = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {key: value for key, value in named.items() if value},
        "$patch": "delete",
    }
    return {"target": _target(document), "patch": _Text(yaml.safe_dump(patch, sort_keys=False))}


def _patch(old: Document, new: Document) -> dict[str, Any]:
    changes = list(operations(old.manifest, new.manifest))
    return {"target": _target(new), "patch": _Text(yaml.safe_dump(changes, sort_keys=False))}


def _target(document: Document) -> dict[str, str]:
    group, _, version = document.manifest["apiVersion"].rpartition("/")
    where = {"group": group, "version": version, "kind": document.key.kind}
    named = {**where, "name": document.key.name}
    return {key: value for key, value in named.items() if value}


class _Text(str):
    """Text of several lines, written as a block."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes lists as deep as their key."""


_Dumper.add_representer(
    _Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def _yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=1 << 16)
    return HEAD + text
