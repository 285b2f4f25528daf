"""Every method can be called by a person with a reflection client, such as `buf curl`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.manifests import pod
from tests.stack.stack import Stack
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")

BUF = Path(sys.executable).with_name("buf")
FILTER, SCORER, BINDER, REPLICA = (
    f"moorage.v1.{kind}Service" for kind in ("Filter", "Scorer", "Binder", "Replica")
)


async def curl(place: str, *arguments: str, data: object = None) -> tuple[int, str]:
    """Run `buf curl`; return its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        BUF,
        "curl",
        "--protocol=grpc",
        "--http2-prior-knowledge",
        *arguments[:-1],
        f"http://{place}{arguments[-1]}",
        *(() if data is None else ("--data", json.dumps(data))),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def ask(place: str, method: str, data: object) -> Any:
    """Call a method that works; return its answer."""
    code, text = await curl(place, f"/{method}", data=data)
    assert code == 0, text
    return json.loads(text)


async def test_the_methods_can_be_listed(stack: Stack) -> None:
    of_replicas = {"GetState", "ListPlugins", "Session"}
    for name, service, methods in (
        ("filter", FILTER, {"Filter"}),
        ("filter", REPLICA, of_replicas),
        ("scorer-1", SCORER, {"Score"}),
        ("scorer-1", REPLICA, of_replicas),
        ("binder", BINDER, {"Bind", "ListPlugins"}),
    ):
        code, text = await curl(stack.addresses.services[name], "--list-methods", "")
        assert code == 0, text
        listed = {line.strip() for line in text.splitlines()}
        assert {f"{service}/{method}" for method in methods} <= listed


async def test_filter_by_hand_says_which_plugin_rejects_which_node(stack: Stack) -> None:
    await stack.create([node("n1", labels={"disk": "ssd"}), node("n2")])
    request = {
        "pod": {"manifest": pod("p", nodeSelector={"disk": "ssd"})},
        "nodeNames": ["n2", "n1"],
    }
    answer = await ask(stack.addresses.services["filter"], f"{FILTER}/Filter", request)
    assert answer["feasible"] == ["n1"]
    assert answer["rejected"][0]["node"] == "n2"
    assert answer["rejected"][0]["reason"]["plugin"] == "NodeAffinity"


async def test_score_by_hand_shows_what_totals_are_made_of(stack: Stack) -> None:
    await stack.create([node("small", cpu="2"), node("large", cpu="64")])
    place, names = stack.addresses.services["scorer-1"], ["small", "large"]

    async def caught_up() -> bool:
        code, text = await curl(place, f"/{REPLICA}/GetState", data={"nodeNames": names})
        return code == 0 and json.loads(text)["nodeCount"] == 2

    await stack.until(caught_up)
    request = {"pod": {"manifest": pod("p", cpu="1")}}
    answer = await ask(place, f"{SCORER}/Score", request)
    assert [entry["node"] for entry in answer["nodes"]] == ["large", "small"]
    least = next(
        p for p in answer["nodes"][0]["plugins"] if p["plugin"] == "NodeResourcesLeastAllocated"
    )
    # cpu: (64000 - 1000) * 100 // 64000 = 98; memory: no request counts as 200 MiB of 32 GiB: 99.
    assert least["raw"] == 98


async def test_plugins_are_listed_with_schema_and_defaults(stack: Stack) -> None:
    place = stack.addresses.services["filter"]
    answer = await ask(place, f"{REPLICA}/ListPlugins", {})
    group = next(p for p in answer["plugins"] if p["name"] == "NodeGroup")
    assert group["extensionPoints"] == ["PreFilter", "Filter"]
    assert group["origin"] == "built-in"
    assert group["defaultArguments"] == {"label": "nodeGroup"}
    traced = next(p for p in answer["plugins"] if p["name"] == "Traced")
    assert traced["extensionPoints"] == ["PreFilter", "Filter", "PreScore", "Score"]
    assert traced["origin"].endswith("traced.py")


async def test_the_state_is_shown_with_pods_and_what_they_request(stack: Stack) -> None:
    await stack.create([node("n1")], [pod("a", cpu="250m"), pod("b", cpu="1")])
    await stack.all_bound(2)
    place = stack.addresses.services["filter"]

    async def caught_up() -> bool:
        state = await ask(place, f"{REPLICA}/GetState", {"nodeNames": ["n1"]})
        return bool(state["nodes"][0].get("pods") == ["default/a", "default/b"])

    await stack.until(caught_up)
    state = await ask(place, f"{REPLICA}/GetState", {"nodeNames": ["n1"]})
    assert state["nodeCount"] == 1
    assert state["podCount"] == 2
    assert state["nodes"][0]["requested"] == {"cpu": "1250m", "pods": "2"}


async def test_filter_has_the_objects_that_its_plugins_read_and_scorer_has_not(
    stack: Stack,
) -> None:
    selector = {"matchLabels": {"app": "db"}}
    template = {"metadata": {"labels": {"app": "db"}}}
    await stack.post(
        "apis/apps/v1/namespaces/default/statefulsets",
        {"metadata": {"name": "db"}, "spec": {"selector": selector, "template": template}},
    )
    zone = "topology.kubernetes.io/zone"
    await stack.create([node("na", labels={zone: "a"}), node("nb", labels={zone: "b"})])

    async def object_counts(name: str) -> Any:
        place = stack.addresses.services[name]
        return (await ask(place, f"{REPLICA}/GetState", {})).get("objectCounts", {})

    async def known() -> bool:
        counts = await object_counts("filter")
        read = {kind: counts.get(kind) for kind in ("statefulsets.apps", "persistentvolumes")}
        return read == {"statefulsets.apps": 1, "persistentvolumes": 0}

    await stack.until(known)
    assert await object_counts("scorer-1") == {}
    member = pod("db-1", labels={"statefulset.kubernetes.io/pod-name": "db-1"})
    member["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "db", "uid": "u"}]
    request = {"pod": {"manifest": member}, "plugin": "StatefulSetZone"}
    answer = await ask(stack.addresses.services["filter"], f"{FILTER}/Filter", request)
    assert answer["feasible"] == ["nb"]


async def test_a_session_by_hand_takes_names_and_no_state(stack: Stack) -> None:
    await stack.create([node("n1"), node("n2", cpu="1")])
    cycle = {
        "id": 7,
        "timeout": "2s",
        "profile": "moorage",
        "pod": {"manifest": pod("p", cpu="2")},
        "nodeNames": ["n2", "n1"],
    }
    place = stack.addresses.services["filter"]
    code, text = await curl(place, f"/{REPLICA}/Session", data={"cycle": cycle})
    assert code == 0, text
    hello, result = _values(text)
    assert hello["hello"]["plugins"]
    assert result["result"]["cycle"] == "7"
    assert result["result"]["verdicts"] == "AQAAAA=="  # uint16 1 for n2, 0 for n1
    assert result["result"]["reasons"][0]["text"] == "Insufficient cpu"


async def test_a_mistake_by_hand_is_named(stack: Stack) -> None:
    request = {"pod": {"manifest": pod("p")}, "plugin": "NoSuch"}
    code, text = await curl(stack.addresses.services["filter"], f"/{FILTER}/Filter", data=request)
    assert code != 0
    assert "plugin 'NoSuch' is not enabled here" in json.loads(text)["message"]


def _values(text: str) -> list[Any]:
    """Read several JSON values that stand one after another."""
    decoder, values, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        value, end = decoder.raw_decode(text, at)
        values.append(value)
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return values
