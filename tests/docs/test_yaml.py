"""Every YAML block is checked by a test: here, or by one that is named here."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from kubernetes_asyncio.client import models

from moorage_host.kube_scheduler import ExtenderConfig, KubeSchedulerProfile
from moorage_host.policy import KIND
from moorage_host.policy.checks import check_arguments
from sandbox.apiserver.resources.table import BUILT_IN
from services.filter.plugins import BUILT_INS as FILTERS
from services.scorer.plugins import BUILT_INS as SCORERS
from tests.needs import needed
from tools.docs.pages import ROOT, Block, all_blocks, blocks

LANGUAGES = {
    *("sh", "text", "python", "go", "yaml", "json", "jsonc", "toml", "dockerfile"),
    "mermaid",
}

ELSEWHERE = {(row.api_version, row.kind): "test_manifests" for row in BUILT_IN if row.is_stored} | {
    ("moorage.io/v1alpha1", KIND): "test_policies",
    ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"): "test_manifests",
    ("v1", "Binding"): "walkthroughs",
    ("kubeadm.k8s.io/v1beta4", "InitConfiguration"): "read by kubeadm only",
    ("kubeadm.k8s.io/v1beta4", "ClusterConfiguration"): "read by kubeadm only",
}
"""Whole documents by what checks them."""

KUSTOMIZATION = {
    *("apiVersion", "kind", "resources", "components", "images", "patches", "namespace"),
    *("configMapGenerator", "secretGenerator", "generatorOptions", "labels", "replicas"),
}

VALUES = yaml.safe_load((ROOT / "deploy" / "chart" / "moorage" / "values.yaml").read_text())


def test_every_block_names_a_language() -> None:
    assert {str(b): b.language for b in all_blocks() if b.language not in LANGUAGES} == {}


def test_a_block_is_what_it_looks_like(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for block in _own_blocks():
        with subtests.test(str(block)):
            for document in filter(None, yaml.safe_load_all(block.text)):
                if isinstance(document, list):
                    _check_list(document)
                elif document.get("kind") == "Kustomization" or document.keys() == {"components"}:
                    _check_kustomization(document)
                elif "kind" in document:
                    kind = document["apiVersion"], document["kind"]
                    assert kind in ELSEWHERE, f"{kind}: no test checks such documents; add one"
                elif block.text.startswith("# values.yaml"):
                    _check_values(document, VALUES)
                else:
                    _check_fragment(document, tmp_path)


def _own_blocks() -> Iterator[Block]:
    """Yield blocks of pages; included files are tested elsewhere, mistakes in test_policies."""
    for block in blocks("yaml"):
        if not block.included and not block.text.startswith("# mistakes"):
            yield block


def _check_fragment(document: Mapping[str, Any], folder: Path) -> None:
    if document.keys() == {"scrape_configs"}:
        for each in document["scrape_configs"]:
            del each["kubernetes_sd_configs"]  # which Debian's promtool is built without
        _promtool(folder, document, "check", "config", "--syntax-only")
        return
    if {"schedulerName", "plugins"} <= document.keys():
        msgspec.convert(document, KubeSchedulerProfile)
        return
    assert document.keys() <= FRAGMENTS.keys(), "what is this a part of? Add it to FRAGMENTS"
    for key, value in document.items():
        FRAGMENTS[key](value)


def _check_list(items: list[Any]) -> None:
    assert all(each["op"] in ("add", "remove", "replace", "test") for each in items)
    assert all(each["path"].startswith("/") for each in items), "no JSON patch"


def _check_kustomization(document: Mapping[str, Any]) -> None:
    assert document.keys() <= KUSTOMIZATION
    for path in [*document.get("resources", []), *document.get("components", [])]:
        assert (ROOT / path).exists() or not path.startswith("deploy/"), path


def _check_values(given: Mapping[str, Any], known: Mapping[str, Any], path: str = "") -> None:
    """Fail if the chart has no such value; below an empty mapping everything may be."""
    for key, value in given.items():
        assert key in known, f"the chart has no value {path}{key}"
        if isinstance(value, dict) and known[key] and key != "policy":
            _check_values(value, known[key], f"{path}{key}.")


def _promtool(folder: Path, document: object, *command: str) -> None:
    promtool = needed("promtool")
    file = folder / "shown.yaml"
    file.write_text(json.dumps(document))
    done = subprocess.run(
        [promtool, *command, file], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _has_fields(kind: str) -> Callable[[Any], None]:
    """Return what fails if a value has fields that the API's type does not have."""

    def check(value: Any) -> None:
        _check_fields(value, kind)

    return check


def _check_fields(value: Any, kind: str) -> None:
    if kind.startswith("list["):
        for each in value:
            _check_fields(each, kind[5:-1])
    elif kind.startswith("dict("):
        for each in value.values():
            _check_fields(each, kind.partition(", ")[2][:-1])
    elif model := getattr(models, kind, None):
        fields = {name: key for key, name in model.attribute_map.items()}
        for name, each in value.items():
            assert name in fields, f"{kind} has no field {name}"
            _check_fields(each, model.openapi_types[fields[name]])


def _are_extenders(value: Any) -> None:
    for each in value:
        msgspec.convert({"urlPrefix": "", **each}, ExtenderConfig)


def _are_arguments(value: Any) -> None:
    kinds = {kind.name: kind for kind in (*FILTERS, *SCORERS)}
    for each in value:
        check_arguments(each["args"], kinds[each["name"]].Args, "args")


FRAGMENTS: Mapping[str, Callable[[Any], None]] = {
    "affinity": _has_fields("V1Affinity"),
    "spec": _has_fields("V1PodSpec"),
    "template": _has_fields("V1PodTemplateSpec"),
    "extenders": _are_extenders,
    "pluginConfig": _are_arguments,
}
"""Parts of documents by their key."""
