"""When rows last changed: with whatever happens to a node or to a pod on it, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import initialize, invariant, rule

from gateway.cluster.state import ClusterState
from moorage.models import STATEFUL_SETS, ObjectName, encode
from moorage.testing import make_node
from tests.gateway.cluster.state_changes import StateChanges, place

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


def test_a_node_that_is_new_changes_or_goes(world: World) -> None:
    assert world.touched(lambda s: s.set_node(make_node("d"))) == {"d"}
    assert world.touched(lambda s: s.set_node(make_node("d"))) == set()
    assert world.touched(lambda s: s.set_node(make_node("b", labels={"x": "y"}))) == {"b"}
    assert world.touched(lambda s: s.drop_node("a")) == {"a"}
    assert world.touched(lambda s: s.drop_node("a")) == set()
    row = world.state.rows.capacity - 4
    assert world.touched(lambda s: s.set_node(make_node("e"))) == {"e"}
    assert world.state.rows.of["e"] == row, "it got the row of another"


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


def test_a_pod_that_is_placed_changes_moves_or_goes(world: World) -> None:
    assert world.touched(lambda s: s.set_pod(place("p"))) == set()
    assert world.touched(lambda s: s.set_pod(place("p", "a"))) == {"a"}
    assert world.touched(lambda s: s.set_pod(place("p", "a"))) == set()
    assert world.touched(lambda s: s.set_pod(place("p", "a", "2"))) == {"a"}
    assert world.touched(lambda s: s.set_pod(place("p", "b"))) == {"a", "b"}
    assert world.touched(lambda s: s.drop_pod(UID)) == {"b"}
    assert world.touched(lambda s: s.drop_pod(UID)) == set()
    assert world.touched(lambda s: s.set_pod(place("q")), lambda s: s.drop_pod("q")) == set()


def test_a_pod_whose_node_is_not_known_yet(world: World) -> None:
    assert world.touched(lambda s: s.set_pod(place("p", "late"))) == set()
    assert world.touched(lambda s: s.set_node(make_node("late"))) == {"late"}
    assert world.touched(lambda s: s.drop_pod(UID)) == {"late"}


def test_an_assumed_pod(world: World) -> None:
    world.state.set_pod(place("p"))
    assert world.touched(lambda s: s.assume(place("p"), "a")) == {"a"}
    assert world.touched(lambda s: s.assume(place("p"), "a")) == set()
    assert world.touched(lambda s: s.confirm(UID)) == set()
    assert world.touched(lambda s: s.forget(UID)) == {"a"}
    assert world.touched(lambda s: s.forget(UID)) == set()


def test_an_assumed_pod_that_is_seen_elsewhere_or_expires(world: World) -> None:
    world.state.assume(place("p"), "a")
    assert world.touched(lambda s: s.set_pod(place("p", "c"))) == {"a", "c"}
    world.state.assume(place("q"), "b")
    world.state.confirm(place("q").uid)
    world.now = 10
    assert world.touched(lambda s: s.expire()) == {"b"}


def test_a_claim(world: World) -> None:
    assert world.touched(lambda s: s.claim(place("p"), "a")) == {"a"}
    assert world.touched(lambda s: s.assume(place("p"), "a")) == set()
    assert world.touched(lambda s: s.release(UID)) == set(), "a bind has come"
    assert world.touched(lambda s: s.claim(place("q"), "b")) == {"b"}
    assert world.touched(lambda s: s.release(place("q").uid)) == {"b"}
    assert world.touched(lambda s: s.claim(place("r"), "c")) == {"c"}
    assert world.touched(lambda s: s.assume(place("r"), "b")) == {"b", "c"}


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


class RowsThatLookTheSameAreTheSame(StateChanges):
    """Whatever happens, a row that was not touched since has the same node and pods."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.state = self.world.state
        self.remember()

    @rule()
    def remember(self) -> None:
        self.then, self.picture = self.state.generation, self.look()

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

    @rule()
    def later(self) -> None:
        self.world.now += 6
        self.state.expire()

    @invariant()
    def untouched_rows_are_the_same(self) -> None:
        now = self.look()
        for row, seen in self.picture.items():
            if self.state.rows.touched[row] <= self.then:
                assert now[row] == seen


TestRows = RowsThatLookTheSameAreTheSame.TestCase
TestRows.settings = settings(stateful_step_count=30)
