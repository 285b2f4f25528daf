"""Cycles are serial, binds are not; bind plugins, notes and StatefulSets."""

import asyncio
import itertools
import json
import signal
from collections import Counter
from typing import Any

import pytest

from tests.manifests import pod
from tests.stack.stack import Stack
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_slow_bind_does_not_hold_up_the_next_pods_filter(stack: Stack) -> None:
    first, *_ = await stack.create([node("n1")], [pod("first", schedulerName="nobody")])
    await stack.fault(verb="create", resource="pods/binding", delaySeconds=2)
    bind = asyncio.create_task(stack.bind(first, "n1"))

    async def under_way() -> bool:
        return await stack.metric("moorage_cache_size", type="assumed_pods") == 1

    await stack.until(under_way)
    answer = await stack.filter(pod("second"), ["n1"])

    assert answer["NodeNames"] == ["n1"]
    assert not bind.done()
    assert await bind == ""


async def test_cycles_of_two_callers_never_overlap(stack: Stack) -> None:
    names = ["n1", "n2", "n3"]
    await stack.create([node(name) for name in names])

    async def caller(which: str) -> None:
        for i in range(4):
            obj = pod(f"{which}-{i}", schedulerName="traced")
            assert (await stack.filter(obj, names))["NodeNames"] == names
            # Another set of nodes than the filter's, so that scoring is a cycle of its own.
            await stack.prioritize(obj, names[:2])

    await asyncio.gather(caller("a"), caller("b"), caller("c"))

    steps: dict[str, list[tuple[float, float]]] = {}
    for line in stack.trace.read_text().splitlines():
        begin, end, name = line.split()[:3]
        steps.setdefault(name, []).append((float(begin), float(end)))
    # Each of the 12 pods: filtered and scored ahead, perhaps side by side; scored for prioritize.
    assert {len(found) for found in steps.values()} == {3}
    cycles = []
    for found in steps.values():
        first, second, alone = sorted(found)
        cycles += [(first[0], max(first[1], second[1])), alone]
    for before, after in itertools.pairwise(sorted(cycles)):
        assert before[1] <= after[0]


async def test_a_pod_being_bound_counts_on_its_node_for_the_next_pod(stack: Stack) -> None:
    big, *_ = await stack.create(
        [node("n1", cpu="4")], [pod("big", cpu="3", schedulerName="nobody")]
    )
    await stack.fault(verb="create", resource="pods/binding", delaySeconds=1)
    bind = asyncio.create_task(stack.bind(big, "n1"))

    async def assumed() -> bool:
        return await stack.metric("moorage_cache_size", type="assumed_pods") == 1

    await stack.until(assumed)
    answer = await stack.filter(pod("next", cpu="2"), ["n1"])

    assert answer["FailedNodes"] == {"n1": "Insufficient cpu"}
    await bind


async def test_pods_do_not_all_go_to_the_node_that_was_idle_when_it_was_measured(
    stack: Stack,
) -> None:
    free = {"n1": 3600, "n2": 3600, "n3": 3600, "idle": 7600}  # of 8 cores
    annotated = [node(name, annotations={"mean-free-cpu": str(cpu)}) for name, cpu in free.items()]
    await stack.create(
        annotated, [pod(f"p{i}", cpu="400m", schedulerName="loaded") for i in range(20)]
    )

    places = Counter((await stack.all_bound(20)).values())

    # The idle one has ten pods less to do. Scores are whole numbers up to 10, so two are as good.
    assert 10 - 2 <= places["idle"] <= 15 + 2
    assert min(places[name] for name in free) > 0


async def test_a_steady_cluster_ships_deltas_only(stack: Stack) -> None:
    await stack.create([node(f"n{i}") for i in range(20)])
    sent = "moorage_session_sent_bytes_total"
    full = [await stack.metric(sent, service=s, part="full") for s in ("filter", "scorer")]
    before = await stack.metric(sent, service="filter", part="delta")

    await stack.create([], [pod(f"p{i}") for i in range(20)])
    await stack.all_bound(20)

    assert full == [await stack.metric(sent, service=s, part="full") for s in ("filter", "scorer")]
    delta = await stack.metric(sent, service="filter", part="delta") - before
    # Each pod is sent as assumed, as bound, and as running; a node is never sent again.
    assert 0 < delta < 20 * 3 * 1000


async def test_the_decision_says_what_each_plugin_did(stack: Stack) -> None:
    nodes = [node("n1", labels={"nodeGroup": "1"}), node("n2", labels={"nodeGroup": "2"})]
    nodes.append(node("n3", labels={"nodeGroup": "1"}))
    await stack.create(nodes, [pod("p", labels={"nodeGroup": "1"})])
    place = (await stack.all_bound(1))["p"]

    async def ended() -> bool:
        return "bind" in await stack.decision("p")

    await stack.until(ended)
    decision = await stack.decision("p")

    assert decision["filter"]["nodes"] == 3
    assert decision["filter"]["feasible"] == 2
    group = next(p for p in decision["filter"]["plugins"] if p["plugin"] == "NodeGroup")
    assert group["rejected"] == 1
    assert group["reasons"][0]["nodes"] == 1
    assert {entry["node"] for entry in decision["score"]["top"]} == {"n1", "n3"}
    assert decision["bind"]["node"] == place
    assert decision["bind"].get("error", "") == ""


async def test_forked_processes_bind_hundreds_of_pods_without_an_error_and_end_in_order(
    stack: Stack,
) -> None:
    """gRPC works in forks under load, and they end as started processes do."""
    count = 300

    async def errors() -> float:
        failed = [
            await stack.metric("moorage_extender_requests_total", verb=verb, result="failed")
            for verb in ("filter", "prioritize", "bind")
        ]
        return sum(failed)

    async def said() -> bool:
        return len(stack.messages) >= before + 2

    failed, before = await errors(), len(stack.messages)
    nodes = [node(f"n{i}") for i in range(30)]
    pods = [pod(f"p{i}", cpu=f"{10 + i}m") for i in range(count)]
    await stack.create(nodes, pods)
    places = await stack.all_bound(count)
    assert set(places.values()) <= {each["metadata"]["name"] for each in nodes}
    assert await errors() == failed

    for name in ("gateway", "binder"):
        stack.kill(name, signal.SIGTERM)
    await stack.until(said)
    assert {each.partition(":")[0] for each in stack.messages[before:]} == {
        "gateway ended with exit code 0",
        "binder ended with exit code 0",
    }
    await stack.answers()
    await stack.create(pods=[pod("last")])
    await stack.all_bound(count + 1)


async def test_a_pod_carries_the_decision_if_its_profile_says_so(stack: Stack) -> None:
    await stack.create([node("n1")], [pod("p")])
    await stack.all_bound(1)
    annotations = (await stack.pods())["p"]["metadata"]["annotations"]
    written = json.loads(annotations["moorage.io/decision"])
    decision = await stack.decision("p")
    assert written == {
        "winner": {"node": "n1"},
        "reason": "kube-scheduler offered one node only",
        "nodes": 1,
        "feasible": 1,
        "policyRevision": decision["policyRevision"],
        "generation": decision["generation"],
    }


async def test_a_dead_prometheus_is_in_the_decision_of_each_half(stack: Stack) -> None:
    names = ["n1", "n2"]
    await stack.create([node(name) for name in names])
    obj = pod("unseen", schedulerName="blind")
    assert (await stack.filter(obj, names))["NodeNames"] == names, "it lets them pass, unseen"
    await stack.prioritize(obj, names)

    decision = await stack.decision("unseen")

    (filtering,), (scoring,) = decision["filter"]["plugins"], decision["score"]["plugins"]
    for half in (filtering, scoring):
        assert half["plugin"] == "SafeOverload"
        assert half["note"].startswith(
            "2 of 2 nodes have no measurements (onMissing: neutral); "
            "cannot query Prometheus at http://127.0.0.1:1"
        )
    assert "failure" not in filtering
    assert "cannot query Prometheus" in scoring["failure"]


async def test_there_is_no_note_where_nothing_is_to_be_noted(stack: Stack) -> None:
    names = ["n1", "n2"]
    await stack.create([node(name, annotations={"mean-free-cpu": "4000"}) for name in names])
    obj = pod("seen", schedulerName="loaded")
    await stack.filter(obj, names)
    await stack.prioritize(obj, names)

    (scoring,) = (await stack.decision("seen"))["score"]["plugins"]

    assert scoring.keys() == {"plugin", "seconds", "version"}


ZONE = "topology.kubernetes.io/zone"
SETS = "apis/apps/v1/namespaces/default/statefulsets"
VOLUMES = "api/v1/persistentvolumes"
NAMES = ["na", "nb", "nc"]


async def a_stateful_set(stack: Stack) -> None:
    """Create a StatefulSet, and a node in each of three zones; wait until they are known."""
    templates = [{"metadata": {"name": "data"}}]
    labels = {"app": "db"}
    spec = {
        "replicas": 3,
        "volumeClaimTemplates": templates,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}},
    }
    by_hand = {"sandbox.moorage.io/not-managed": ""}
    await stack.post(SETS, {"metadata": {"name": "db", "annotations": by_hand}, "spec": spec})
    await stack.create([node(name, labels={ZONE: name[1:]}) for name in NAMES])

    async def known() -> bool:
        return await stack.metric("moorage_cache_size", type="statefulsets.apps") == 1

    await stack.until(known)


def member(number: int) -> dict[str, Any]:
    """Build a pod as the StatefulSet's controller does."""
    name = f"db-{number}"
    obj = pod(name, labels={"statefulset.kubernetes.io/pod-name": name})
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db"}
    obj["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return obj


async def feasible(stack: Stack, number: int) -> list[str]:
    answer = await stack.filter(member(number), NAMES)
    assert answer["Error"] == ""
    found: list[str] = answer["NodeNames"]
    return found


async def test_pods_of_a_stateful_set_run_in_the_zone_of_their_ordinal(stack: Stack) -> None:
    await a_stateful_set(stack)
    await stack.create([], [*map(member, range(3)), pod("other")])
    places = await stack.all_bound(4)
    assert [places[f"db-{number}"] for number in range(3)] == NAMES
    assert places["other"] in NAMES


async def test_a_volume_that_appears_later_changes_the_verdict(stack: Stack) -> None:
    await a_stateful_set(stack)
    assert await feasible(stack, 3) == ["na"]
    full = await stack.metric("moorage_session_sent_bytes_total", service="filter", part="full")
    claims = {"data-db-0": "a", "data-db-1": "b", "data-db-3": "b"}
    for claim, zone in claims.items():
        metadata = {"name": f"pv-{claim}", "labels": {ZONE: zone}}
        reference = {"namespace": "default", "name": claim}
        await stack.post(VOLUMES, {"metadata": metadata, "spec": {"claimRef": reference}})

    async def follows_its_volume() -> bool:
        return await feasible(stack, 3) == ["na", "nb"]

    await stack.until(follows_its_volume)
    assert full == await stack.metric(
        "moorage_session_sent_bytes_total", service="filter", part="full"
    )
