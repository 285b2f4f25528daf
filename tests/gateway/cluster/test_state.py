"""The cluster state: rows, places, generations, and deltas that replicas can trust."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from gateway.cluster.changes import Changes
from gateway.cluster.state import ClusterState
from moorage.models import STATEFUL_SETS, ObjectName, encode
from moorage.testing import make_node
from moorage_host.plugins import Replica
from tests.gateway.cluster.state_changes import NAMES, StateChanges, place


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def apply(replica: Replica, changes: Changes) -> None:
    """Do what a replica does with a state message."""
    for uid in changes.removed_pods:
        replica.snapshot.remove_pod(uid)
    for row in changes.removed_rows:
        replica.snapshot.remove_row(row)
    replica.set_nodes(changes.nodes)
    replica.place_pods([(row, encode(pod)) for row, pod in changes.pods])
    for name in changes.removed_objects:
        replica.snapshot.objects.remove(name)
    replica.put_objects(changes.objects)
    if not changes.partial:
        replica.generation = changes.generation


def synchronised(state: ClusterState) -> Replica:
    """Return a replica that was told everything."""
    replica = Replica()
    replica.clear([STATEFUL_SETS])
    for part in state.everything(2):
        apply(replica, part)
    return replica


def test_objects_count_as_manifests() -> None:
    state, name = ClusterState(), ObjectName(STATEFUL_SETS, "default", "db")
    state.objects.open(STATEFUL_SETS)
    for content in (b"{}", b'{"n":1}', None):
        before = state.manifests_changed
        if content is None:
            state.objects.drop(name)
        else:
            state.objects.put(name, content)
        assert state.manifests_changed == state.generation > before
    before = state.generation
    state.claim(place("p"), "n")
    assert state.manifests_changed == before < state.generation


def picture(replica: Replica) -> dict[str, Any]:
    nodes = replica.snapshot.nodes()
    seen: dict[str, Any] = {
        node.name: (node.row, node.manifest, dict(node.requested), {p.uid: p for p in node.pods})
        for node in nodes
    }
    sets = nodes.objects(STATEFUL_SETS)
    newest = sets.derived("newest", lambda objects: max((o["n"] for o in objects), default=0))
    return {**seen, "sets": {n: sets.get(n, "default") for n in "abcd"}, "newest": newest}


class ReplicasFollow(StateChanges):
    """Whatever happens, a replica fed with deltas equals one fed with everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState()
        self.state.objects.open(STATEFUL_SETS)
        self.follower = synchronised(self.state)

    @rule(name=NAMES, number=st.integers(0, 3))
    def stateful_set(self, name: str, number: int) -> None:
        content = encode({"n": number})
        self.state.objects.put(ObjectName(STATEFUL_SETS, "default", name), content)

    @rule(name=NAMES)
    def stateful_set_gone(self, name: str) -> None:
        self.state.objects.drop(ObjectName(STATEFUL_SETS, "default", name))

    @rule()
    def synchronise(self) -> None:
        changes = self.state.changes_since(self.follower.generation)
        assert changes is not None
        apply(self.follower, changes)

    @invariant()
    def follower_equals_rebuild(self) -> None:
        changes = self.state.changes_since(self.follower.generation)
        assert changes is not None
        apply(self.follower, changes)
        assert picture(self.follower) == picture(synchronised(self.state))


class ReplicasJoin(ReplicasFollow):
    """The same when a replica joins while the state changes, between the parts that it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.join()

    @rule()
    def join(self) -> None:
        self.joining = Replica()
        self.joining.clear([STATEFUL_SETS])
        self.parts = self.state.everything(1)

    @rule()
    def next_part(self) -> None:
        for part in itertools.islice(self.parts, 1):
            apply(self.joining, part)

    @invariant()
    def follower_equals_rebuild(self) -> None:
        pass

    def teardown(self) -> None:
        for part in self.parts:
            apply(self.joining, part)
        changes = self.state.changes_since(self.joining.generation)
        assert changes is not None
        apply(self.joining, changes)
        assert picture(self.joining) == picture(synchronised(self.state))


class ReplicasCatchUp(ReplicasFollow):
    """The same when the replica catches up only now and then."""

    @invariant()
    def follower_equals_rebuild(self) -> None:
        pass

    def teardown(self) -> None:
        super().follower_equals_rebuild()


TestReplicasFollow = ReplicasFollow.TestCase
TestReplicasCatchUp = ReplicasCatchUp.TestCase
TestReplicasJoin = ReplicasJoin.TestCase
for _case in (TestReplicasFollow, TestReplicasCatchUp, TestReplicasJoin):
    _case.settings = settings(stateful_step_count=30)
del _case  # which would be a test of its own


@dataclass
class World:
    clock: Clock = field(default_factory=Clock)
    state: ClusterState = field(init=False)
    kept_changes: int = 1000

    def __post_init__(self) -> None:
        self.state = ClusterState(
            assumed_ttl=10, claim_ttl=5, kept_changes=self.kept_changes, clock=self.clock
        )
        for name in ("a", "b"):
            self.state.set_node(make_node(name))

    def placed(self) -> dict[str, str | None]:
        pods = [placed for part in self.state.everything(9) for placed in part.pods]
        return {pod.name: self.state.rows.name_at(row) for row, pod in pods}


@pytest.fixture
def world() -> World:
    return World()


def test_an_assumed_pod_has_its_place_until_its_bind_fails_or_another_is_seen(world: World) -> None:
    world.state.assume(place("p"), "a")
    world.clock.now = 100
    assert world.state.expire() == 0, "its bind is under way still"
    ((_, pod),) = [placed for part in world.state.everything(9) for placed in part.pods]
    assert pod.spec.node_name == "a"
    world.state.confirm(pod.uid)
    assert world.state.counts["assumed_pods"] == 1
    world.state.set_pod(place("p", "b"))
    assert (world.placed(), world.state.counts["assumed_pods"]) == ({"p": "b"}, 0)
    world.state.assume(place("q"), "a")
    world.state.forget(place("q").uid)
    assert world.placed() == {"p": "b"}


def test_no_bound_pod_expires_while_the_watch_is_silent(world: World) -> None:
    world.state.assume(place("p"), "a")
    world.clock.now = 5
    world.state.confirm(place("p").uid)
    world.clock.now = 100
    assert world.state.expire(heard=5) == 0
    assert world.placed() == {"p": "a"}
    assert world.state.expire(heard=14.9) == 0
    assert world.state.expire(heard=15) == 1
    assert world.placed() == {}


def test_a_failed_attempt_ends_its_own_claim_and_no_later_one(world: World) -> None:
    pod = place("p")
    world.state.set_pod(pod, "first")
    world.state.claim(pod, "a", "first")
    world.state.set_pod(pod, "first")
    assert world.placed() == {"p": "a"}
    world.state.set_pod(pod, "second")
    assert world.placed() == {}
    world.state.claim(pod, "a", "second")
    world.state.assume(pod, "a")
    world.state.set_pod(pod, "third")
    assert world.placed() == {"p": "a"}, "a bind is under way"


def test_a_pod_has_what_its_claim_says_until_its_bind_has_ended(world: World) -> None:
    pod, device = place("p"), {"device": "1"}

    def given() -> dict[str, str]:
        (placed,) = world.state.placements("a")
        return dict(placed.pod.annotations)

    world.state.claim(pod, "a", annotations=device)
    assert given() == device
    assert world.state.assume(pod, "a", {"device": "2"}) == given() == device
    assert world.state.assume(pod, "a", {"device": "3"}) == device, "it may have been written"
    world.state.forget(pod.uid)
    assert world.state.assume(pod, "a", {"device": "3"}) == given() == {"device": "3"}


def test_a_claim_places_the_pod_until_it_is_released_or_no_bind_comes(world: World) -> None:
    for ended in (lambda: world.state.release(place("p").uid), world.state.expire):
        before = world.state.generation
        world.state.set_pod(place("p"))
        assert world.state.generation == before, "an unbound pod is no change for replicas"
        world.state.claim(place("p"), "a")
        assert (world.placed(), world.state.counts["claims"]) == ({"p": "a"}, 1)
        assert world.state.place_of(place("p").uid) == "a"
        world.clock.now += 4.9
        assert world.state.expire() == 0
        world.clock.now += 0.2
        ended()
        assert (world.placed(), world.state.place_of(place("p").uid)) == ({}, "")


def test_a_bind_makes_a_claim_last_and_is_no_change_on_the_same_node(world: World) -> None:
    world.state.claim(place("p"), "a")
    before = world.state.generation
    world.state.assume(place("p"), "a")
    assert world.state.generation == before
    assert world.state.counts["claims"] == 0
    world.clock.now = 1000
    assert world.state.expire() == 0
    world.state.release(place("p").uid)
    assert world.placed() == {"p": "a"}


def test_a_joining_replica_reaches_a_state_that_changes_all_the_time() -> None:
    world = World(kept_changes=5)
    for number in range(50):
        world.state.set_pod(place(f"p{number}", "a"))
    joining = Replica()
    joining.clear([STATEFUL_SETS])
    for number, part in enumerate(world.state.everything(4)):
        apply(joining, part)
        world.state.set_pod(place(f"p{number % 50}", "b", f"{number + 1}m"))
        world.state.set_pod(place(f"q{number}", "b"))
    changes = world.state.changes_since(joining.generation)
    assert changes is not None
    apply(joining, changes)
    assert picture(joining) == picture(synchronised(world.state))


def test_a_pod_that_is_seen_bound_as_it_was_assumed_is_no_change(world: World) -> None:
    world.state.assume(place("p"), "a")
    before = world.state.generation
    world.state.set_pod(place("p", "a"))
    assert world.state.generation == before + 1  # the phase: make_pod's pods run once placed
    world.state.assume(place("q"), "a")
    before = world.state.generation
    bound = msgspec.structs.replace(place("q"), spec=place("q", "a").spec)
    world.state.set_pod(bound)
    assert world.state.generation == before
    assert world.placed() == {"p": "a", "q": "a"}
