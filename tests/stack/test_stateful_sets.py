"""Pods of a StatefulSet and their zones: real processes, which learn of objects by the watch."""

from typing import Any

import pytest

from tests.stack.stack import Stack, pod
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")

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
