"""Devices that a filter plugin allocates by annotations: no pod gets that of another one."""

import importlib.util
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage import FilterPlugin
from tests.conftest import EXAMPLES
from tests.gateway.sharing import sharing
from tools.docs.pages import blocks
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gateway, Options, bind, policy_of

NODES = {"n1": "a b", "n2": "a b c", "n3": "a"}
DEVICE = "example.com/device"
LOST: dict[str, Any] = {"done": True, "drop": True}
FAULTS: tuple[dict[str, Any], ...] = ({}, {}, {}, {}, {"status": 409}, LOST)


def documented(name: str, folder: Path) -> type[FilterPlugin]:
    """Return the allocator of the documentation."""
    file = folder / "pick_device.py"
    first = f"# {file.name}\n"
    file.write_text(next(each.text for each in blocks("python") if each.text.startswith(first)))
    spec = importlib.util.spec_from_file_location("pick_device", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind: type[FilterPlugin] = getattr(module, name)
    return kind


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway whose two filter replicas share every cycle."""
    plugin = documented("PickDevice", tmp_path)
    policy = policy_of("{filter: {enabled: [{name: PickDevice}]}}")
    options: Options = {"policy": policy, "nodes": tuple(NODES), "count": 2, "binder": True}
    async with sharing(tmp_path, plugin, **options) as running:
        for name, devices in NODES.items():
            node = running.api.read(f"/api/v1/nodes/{name}")
            annotations = {"example.com/healthy-devices": devices}
            changed = {**node, "metadata": {**node["metadata"], "annotations": annotations}}
            running.api.replace(f"/api/v1/nodes/{name}", changed)
        yield running


def allocated(process: Gateway, names: set[str]) -> dict[tuple[str, str], list[str]]:
    found = defaultdict(list)
    for name in names:
        pod = process.api.read_pod(name)
        if node := pod["spec"].get("nodeName"):
            found[node, pod["metadata"]["annotations"][DEVICE]].append(name)
    return found


@pytest.mark.parametrize("seed", range(2 if EXAMPLES < 100 else 10))
async def test_pods_in_any_order_never_share_a_device(process: Gateway, seed: int) -> None:
    random = Random(seed)
    pods: dict[str, Object] = {}
    chosen: dict[str, str] = {}
    for number in range(120):
        step = random.choice(("create", "filter", "filter", "bind", "bind", "delete"))
        if step == "create" or not pods:
            name = f"p{number}"
            pods[name] = process.api.pod(name, schedulerName="moorage")
        elif step == "filter":
            name = random.choice(sorted(pods))
            if not process.api.node_of(name):
                chosen.pop(name, None)
                answer = await process.filter(pods[name], *NODES)
                if names := answer["NodeNames"]:
                    chosen[name] = random.choice(names)
        elif step == "bind" and chosen:
            name = random.choice(sorted(chosen))
            if effects := random.choice(FAULTS):
                process.api.fault("create", "pods/binding", name=name, **effects)
            await bind(process, pods[name], chosen.pop(name))
        elif step == "delete" and random.random() < 0.5:
            name = random.choice(sorted(pods))
            process.api.delete(f"/api/v1/namespaces/default/pods/{name}")
            del pods[name]
            chosen.pop(name, None)
        for (node, device), there in allocated(process, set(pods)).items():
            assert len(there) == 1, f"{there} have {device} of {node}"
            assert device in NODES[node].split()
    assert allocated(process, set(pods))


async def test_a_claim_shows_its_device_before_the_bind(process: Gateway) -> None:
    pods = [process.api.pod(name, schedulerName="moorage") for name in ("p1", "p2")]
    for pod in pods:
        assert (await process.filter(pod, "n3", "n1"))["NodeNames"]
    _, answer = await process.get("/decisions/default/p1")
    claims = [answer["attempts"][0]["claim"]]
    _, answer = await process.get("/decisions/default/p2")
    claims.append(answer["attempts"][0]["claim"])
    given = {(claim["node"], claim["annotations"][DEVICE]) for claim in claims}
    assert len(given) == 2
    for pod, claim in zip(pods, claims, strict=True):
        assert await bind(process, pod, claim["node"]) == ""
        annotations = process.api.read_pod(pod["metadata"]["name"])["metadata"]["annotations"]
        assert annotations[DEVICE] == claim["annotations"][DEVICE]
