import pytest

from moorage import Nodes, Pod
from moorage.errors import NoStateError, TooManyNodesError, UnknownNameError
from moorage.execution import Profile, Supervisor
from moorage.models import NodeManifest, encode
from moorage.testing import make_node, make_pod
from moorage_host.plugins import CycleInput, Replica
from moorage_host.plugins.host import Policy


async def names_and_pods(
    _profile: Profile, _pod: Pod, nodes: Nodes, _supervisor: Supervisor
) -> list[tuple[str, list[str]]]:
    return [(node.name, sorted(pod.name for pod in node.pods)) for node in nodes]


@pytest.fixture
def replica() -> Replica:
    replica = Replica()
    replica.policy = Policy(profiles={"m": Profile(name="m", plugins=())})
    replica.set_nodes((row, encode(make_node(f"n{row}"))) for row in range(3))
    replica.place_pods([(1, encode(make_pod("a"))), (1, encode(make_pod("b")))])
    replica.generation = 7
    return replica


async def run(
    replica: Replica,
    *,
    pod: Pod | None = None,
    profile: str = "m",
    plugin: str = "",
    candidates: bytes = b"",
    names: tuple[str, ...] | None = None,
    overrides: dict[int, NodeManifest] | None = None,
    excluded: tuple[str, ...] = (),
) -> list[tuple[str, list[str]]]:
    cycle = CycleInput(
        profile=profile,
        pod=pod or make_pod("incoming"),
        plugin=plugin,
        candidates=candidates,
        names=names,
        overrides=overrides or {},
        excluded_pods=excluded,
    )
    nodes, result = await replica.run(cycle, names_and_pods, Supervisor())
    assert nodes.names == [name for name, _ in result]
    return result


ALL = [("n0", []), ("n1", ["a", "b"]), ("n2", [])]


async def test_a_cycle_sees_all_nodes_unless_it_names_some(replica: Replica) -> None:
    assert await run(replica) == ALL
    assert await run(replica, candidates=bytes([0b110])) == ALL[1:]
    assert await run(replica, names=("n2", "n0")) == [ALL[2], ALL[0]]
    assert await run(replica, names=()) == []


async def test_a_pod_is_not_in_its_own_way(replica: Replica) -> None:
    assert (await run(replica, pod=make_pod("a")))[1] == ("n1", ["b"])
    assert await run(replica) == ALL


async def test_excluded_pods_and_overrides_are_there_for_one_cycle(replica: Replica) -> None:
    overrides = {5: make_node("n5")}
    seen = await run(replica, overrides=overrides, excluded=(make_pod("a").uid,))
    assert seen == [("n0", []), ("n1", ["b"]), ("n2", []), ("n5", [])]
    assert await run(replica) == ALL


async def test_unknown_names_are_refused(replica: Replica) -> None:
    with pytest.raises(UnknownNameError, match="unknown node 'n9'"):
        await run(replica, names=("n9",))
    with pytest.raises(UnknownNameError, match="unknown profile 'x'; profiles here: m"):
        await run(replica, profile="x")
    with pytest.raises(UnknownNameError, match="plugin 'P' is not enabled here in profile 'm'"):
        await run(replica, plugin="P")


async def test_without_state_a_cycle_must_bring_its_nodes(replica: Replica) -> None:
    replica.generation = 0
    replica.clear()
    with pytest.raises(NoStateError):
        await run(replica)
    assert await run(replica, overrides={0: make_node("mine")}) == [("mine", [])]


async def test_unknown_nodes_of_a_call_leave_no_trace_in_the_tables(replica: Replica) -> None:
    before = replica.snapshot.capacity
    for call in range(20):
        given = tuple(make_node(f"made-up-{call}-{i}") for i in range(5))
        cycle = CycleInput(
            profile="m", pod=make_pod("p"), given=given, names=tuple(n.name for n in given)
        )
        _, seen = await replica.run(cycle, names_and_pods, Supervisor())
        assert seen == [(n.name, []) for n in given]
    assert replica.snapshot.capacity == before
    assert await run(replica) == ALL


async def test_nodes_of_a_call_fit_beside_a_full_table() -> None:
    replica = Replica(max_nodes=64)
    replica.policy = Policy(profiles={"m": Profile(name="m", plugins=())})
    replica.set_nodes((row, encode(make_node(f"n{row}"))) for row in range(64))
    replica.generation = 1
    cycle = CycleInput(
        profile="m", pod=make_pod("p"), given=(make_node("n1"), make_node("new")), names=("new",)
    )
    _, seen = await replica.run(cycle, names_and_pods, Supervisor())
    assert seen == [("new", [])]


@pytest.mark.parametrize("row", [131_074, 2**28, 2**32 - 1])
async def test_rows_beyond_the_limit_are_refused_and_change_nothing(
    replica: Replica, row: int
) -> None:
    before = replica.snapshot.capacity
    with pytest.raises(TooManyNodesError, match=f"row {row} is beyond the limit of 131072 nodes"):
        replica.set_nodes([(row, encode(make_node("far")))])
    with pytest.raises(TooManyNodesError, match="--max-nodes"):
        await run(replica, overrides={row: make_node("far"), row - 1: make_node("near")})
    assert replica.snapshot.capacity == before
    assert await run(replica) == ALL
