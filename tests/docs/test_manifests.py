"""Kubernetes objects and configurations that pages show are accepted, with strict validation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from moorage_host.kube_scheduler import load_configuration
from sandbox.apiserver import ApiServer
from sandbox.apiserver.requests.patches import apply_json_patch
from sandbox.apiserver.resources.table import BUILT_IN
from tools.docs.pages import DOCS, ROOT, Block, blocks
from tools.inprocess.api import Api

Object = dict[str, Any]

RESOURCES = {(row.api_version, row.kind): row for row in BUILT_IN if row.is_stored}
STATIC_POD = ROOT / "tests" / "e2e" / "renderings" / "kubeadm.yaml"
"""What `kubeadm init phase control-plane scheduler` of Kubernetes 1.37.2 writes."""


def key_of(manifest: Object) -> tuple[str, str]:
    return manifest.get("apiVersion", ""), manifest.get("kind", "")


def objects() -> Iterator[tuple[str, Object]]:
    """Yield the whole objects of kinds that Kubernetes has, with where they stand."""
    for block in blocks("yaml"):
        for document in yaml.safe_load_all(block.text):
            if isinstance(document, dict) and key_of(document) in RESOURCES:
                yield str(block), document


def configurations() -> list[Block]:
    return [b for b in blocks("yaml") if "\nkind: KubeSchedulerConfiguration\n" in b.text]


async def test_objects_are_accepted(subtests: pytest.Subtests) -> None:
    for where, manifest in objects():
        with subtests.test(where):
            async with ApiServer() as server:
                await _create(server, manifest)


def test_kube_scheduler_would_start_with_a_configuration(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for block in configurations():
        with subtests.test(str(block)):
            file = tmp_path / "configuration.yaml"
            file.write_text(block.text)
            load_configuration(file)


async def test_the_patch_for_kubeadm_makes_what_the_page_shows() -> None:
    page = (DOCS / "how-to" / "kubeadm.md").read_text()
    (patch,) = (b.text for b in blocks("yaml") if "path: /spec/containers/0/command/-" in b.text)
    after = apply_json_patch(yaml.safe_load(STATIC_POD.read_text()), yaml.safe_load(patch))
    (command,) = (c["command"] for c in after["spec"]["containers"])
    assert f">     - {command[-1]}\n" in page
    async with ApiServer() as server:
        await _create(server, after)


async def _create(server: ApiServer, manifest: Object) -> None:
    """Create an object as kubectl does: unknown fields are refused."""
    row = RESOURCES[key_of(manifest)]
    group = "/api/v1" if row.api_version == "v1" else f"/apis/{row.api_version}"
    namespace = manifest["metadata"].get("namespace", "default")
    scope = f"/namespaces/{namespace}" if row.namespaced else ""
    if namespace not in ("default", "kube-system"):
        Api(server).create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    url = f"{server.url}{group}{scope}/{row.plural}?fieldValidation=Strict"
    async with aiohttp.ClientSession() as client, client.post(url, json=manifest) as answer:
        assert answer.status == 201, await answer.text()
