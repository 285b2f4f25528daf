"""When rows last changed, how large the state is, and who waits for it."""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from gateway.cluster.heavy import HEAVY_BYTES, MOST_BYTES, SHOWN
from gateway.cluster.pods import decode_seen_pod
from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_for
from moorage.models import STATEFUL_SETS, ObjectName, encode
from moorage.testing import make_node, make_pod
from tests.gateway.cluster.state_changes import CPUS, NAMES, StateChanges, place

Change = Callable[[ClusterState], object]


UID = place("p").uid


@dataclass
class World:
    now: float = 0.0
    state: ClusterState = field(init=False)

    def __post_init__(self) -> None:
        self.state = ClusterState(assumed_ttl=10, claim_ttl=5, clock=lambda: self.now)
        for name in "abc":
            self.state.set_node(make_node(name))

    def touched(self, *changes: Change) -> set[str]:
        """Make changes; return whose rows say that something happened to them since."""
        state, before = self.state, self.state.generation
        names = {row: name for name, row in state.rows.of.items()}
        for change in changes:
            change(state)
        names |= {row: name for name, row in state.rows.of.items()}
        (rows,) = np.nonzero(state.rows.touched > before)
        assert state.rows.touched.max() <= state.generation
        return {names[row] for row in rows.tolist()}


@pytest.fixture
def world() -> World:
    return World()


def test_only_nodes_change_manifests(world: World) -> None:
    def changed(change: Change) -> bool:
        before = world.state.generation
        change(world.state)
        assert world.state.manifests_changed <= world.state.generation
        return world.state.manifests_changed > before

    assert changed(lambda s: s.set_node(make_node("d")))
    assert not changed(lambda s: s.set_node(make_node("d")))
    assert changed(lambda s: s.set_node(make_node("d", images={"app:v1": 5})))
    assert not changed(lambda s: s.set_pod(place("p", "d")))
    assert not changed(lambda s: s.assume(place("q"), "d"))
    assert changed(lambda s: s.drop_node("d"))
    assert not changed(lambda s: s.drop_node("d"))
    assert not changed(lambda s: s.drop_pod(UID))


def test_further_objects_are_on_no_node(world: World) -> None:
    world.state.objects.open(STATEFUL_SETS)
    name = ObjectName(STATEFUL_SETS, "default", "a")
    assert world.touched(lambda s: s.objects.put(name, encode({"n": 1}))) == set()
    assert world.touched(lambda s: s.objects.drop(name)) == set()


def test_thousands_of_rows(world: World) -> None:
    names = [f"n{number}" for number in range(5000)]
    for name in names:
        world.state.set_node(make_node(name))
        assert world.state.rows.touched[-1] == 0, "nobody's row never changes"
    assert world.touched(lambda s: s.set_pod(place("p", names[-1]))) == {names[-1]}
    assert (world.state.rows.touched[: world.state.rows.capacity] > 0).all()


class RowsAreTouchedIfTheyLookDifferent(StateChanges):
    """Whatever happens, the rows that were touched are those whose node or pods changed."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.state = self.world.state
        self.generation, self.picture = self.state.generation, self.look()

    def look(self) -> dict[int, object]:
        """Return what replicas are told of each row."""
        parts = list(self.state.everything(100))
        seen: dict[int, list[object]] = {row: [] for row in range(self.state.rows.capacity)}
        for part in parts:
            for row, content in part.nodes:
                seen[row].append(content)
            for row, pod in sorted(part.pods, key=lambda placed: placed[1].uid):
                seen[row].append(pod)
        return dict(seen)

    @rule(name=NAMES, node=NAMES)
    def claimed(self, name: str, node: str) -> None:
        if not self.state.place_of(place(name).uid):  # else the row is touched all the same
            super().claimed(name, node)

    @rule(name=NAMES, node=st.sampled_from(["", "a", "b", "c", "d"]), cpu=CPUS)
    def pod(self, name: str, node: str, cpu: str) -> None:
        known = self.state.pods.get(place(name).uid)
        if node or known is None or not known.spec.node_name:  # no API server takes it away
            super().pod(name, node, cpu)

    @rule()
    def later(self) -> None:
        self.world.now += 6
        self.state.expire()

    @invariant()
    def touched_rows_look_different(self) -> None:
        now = self.look()
        changed = {row for row, seen in now.items() if seen != self.picture.get(row, [])}
        (touched,) = np.nonzero(self.state.rows.touched > self.generation)
        assert set(touched.tolist()) == changed
        self.generation, self.picture = self.state.generation, now


TestRows = RowsAreTouchedIfTheyLookDifferent.TestCase
TestRows.settings = settings(stateful_step_count=30)


def entries(owner: object, path: str = "state") -> dict[str, int]:
    """Return how many entries each table has; those with a fixed bound are left out."""
    found: dict[str, int] = {}
    for name, value in vars(owner).items():
        where, kept = f"{path}.{name}", value
        if isinstance(kept, dict | set | list) or (isinstance(kept, deque) and kept.maxlen is None):
            found[where] = len(kept)
        elif type(kept).__module__.startswith("gateway."):
            found |= entries(kept, where)
    return found


class NothingStays(StateChanges):
    """Whatever happens, no table keeps what is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.state = ClusterState(clock=lambda: self.now)

    @rule(name=NAMES, node=NAMES, size=st.sampled_from((0, HEAVY_BYTES, 100 * HEAVY_BYTES)))
    def sized(self, name: str, node: str, size: int) -> None:
        made = make_pod(name, node=node if size else "", labels={"a": node})
        self.state.set_pod(made, failure=node, size=size)

    def teardown(self) -> None:
        for uid in {*self.state.known_pods(), *(each.uid for each in self.state.held())}:
            self.state.drop_pod(uid)
        for node in list(self.state.rows.of):
            self.state.drop_node(node)
        self.now = 1e6
        self.state.expire()
        left: dict[str, Any] = entries(self.state)
        for of_rows in ("_names", "_free"):  # at most as many as there were nodes at once
            assert left.pop(f"state.rows.{of_rows}") <= len("abcd")
        assert left == dict.fromkeys(left, 0), "something is kept"


TestNothingStays = NothingStays.TestCase
TestNothingStays.settings = settings(stateful_step_count=60)


HALF = MOST_BYTES // 2


def test_large_pods_are_counted_by_namespace_until_they_are_gone() -> None:
    raw, state = encode(make_pod("p")), ClusterState()
    assert decode_seen_pod(raw).size == len(raw), "the size is that which the API server sent"
    state.set_pod(make_pod("light"), size=HEAVY_BYTES - 1)
    state.set_pod(make_pod("a", namespace="tenant"), size=HEAVY_BYTES)
    state.set_pod(make_pod("b", namespace="tenant"), size=2 * HEAVY_BYTES)
    state.set_pod(make_pod("c", namespace="other"), size=HEAVY_BYTES)
    assert state.heavy.largest() == {"tenant": 3 * HEAVY_BYTES, "other": HEAVY_BYTES}
    state.set_pod(make_pod("b", namespace="tenant", node="n"), size=HEAVY_BYTES)
    assert state.heavy.largest()["tenant"] == 2 * HEAVY_BYTES
    for uid in state.known_pods():
        state.drop_pod(uid)
    assert not state.heavy.largest()
    assert not state.heavy.of


def test_past_its_limit_a_namespace_s_large_pods_are_kept_without_labels_and_annotations() -> None:
    state = ClusterState()

    def kept(name: str, namespace: str) -> bool:
        pod = make_pod(name, namespace=namespace, labels={"a": "b"}, requests={"cpu": "1"})
        state.set_pod(pod, size=HALF)
        known = state.pods.get(pod.uid)
        assert known is not None
        assert known.requests == pod.requests
        return known.labels == {"a": "b"}

    assert [kept(name, "tenant") for name in "abc"] == [True, True, False]
    assert kept("d", "other")
    small = make_pod("e", namespace="tenant", labels={"a": "b"})
    state.set_pod(small, size=100)
    assert state.pods.get(small.uid) == small


def test_a_metric_has_the_namespaces_with_most() -> None:
    state = ClusterState()
    for number in range(3 * SHOWN):
        state.set_pod(make_pod("p", namespace=f"n{number}"), size=HEAVY_BYTES + number)
    assert len(state.heavy.largest()) == SHOWN
    assert next(iter(state.heavy.largest())) == f"n{3 * SHOWN - 1}"


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
    assert await wait_for(state, lambda: True, end=math.inf)
    assert not await wait_for(state, lambda: False, end=asyncio.get_running_loop().time() + 0.01)
    assert not state.listeners
