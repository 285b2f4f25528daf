"""Waits for the cluster state end with the change that they wait for, or in time."""

import asyncio
import math
from collections.abc import Callable

import pytest

from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_for
from moorage.models import STATEFUL_SETS, ObjectName
from moorage.testing import make_node, make_pod

NAME = ObjectName(STATEFUL_SETS, "default", "db")


def put_object(state: ClusterState) -> None:
    state.objects.open(STATEFUL_SETS)
    state.objects.put(NAME, b"{}")


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.set_node(make_node("n")),
        lambda state: state.claim(make_pod("p"), "n"),
        put_object,
    ],
    ids=["node", "pod", "object"],
)
async def test_a_change_ends_the_wait_for_a_newer_state(
    change: Callable[[ClusterState], None],
) -> None:
    state = ClusterState()
    before = state.generation
    waiting = asyncio.create_task(wait_for(state, lambda: state.generation > before, end=math.inf))
    await asyncio.sleep(0)
    change(state)
    assert await waiting
    assert not state.listeners


async def test_other_changes_do_not_end_it() -> None:
    state, pod = ClusterState(), make_pod("p")
    waiting = asyncio.create_task(
        wait_for(state, lambda: state.pods.get(pod.uid) is not None, end=math.inf)
    )
    for name in "abc":
        await asyncio.sleep(0)
        state.set_node(make_node(name))
        assert not waiting.done()
    state.set_pod(pod)  # unbound, so replicas do not see it
    assert await waiting


async def test_what_holds_already_is_not_waited_for() -> None:
    assert await wait_for(ClusterState(), lambda: True, end=math.inf)


async def test_a_wait_ends_in_time() -> None:
    state = ClusterState()
    assert not await wait_for(state, lambda: False, end=asyncio.get_running_loop().time() + 0.01)
    assert not state.listeners
