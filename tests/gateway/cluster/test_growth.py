"""Whatever comes and goes, the state is as small afterwards as before."""

from collections import deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.cluster.heavy import HEAVY_BYTES
from gateway.cluster.state import ClusterState
from moorage.testing import make_node, make_pod

NODES = ("n1", "n2", "n3")
PODS = tuple(f"p{number}" for number in range(6))
STEPS = ("node", "no node", "pod", "no pod", "claim", "assume", "confirm", "release", "forget")

Step = tuple[str, str, str, int]

steps = st.lists(
    st.tuples(
        st.sampled_from(STEPS),
        st.sampled_from(PODS),
        st.sampled_from(NODES),
        st.sampled_from((0, HEAVY_BYTES, 100 * HEAVY_BYTES)),
    ),
    max_size=60,
)


def take(state: ClusterState, step: Step) -> None:
    what, name, node, size = step
    pod = make_pod(name, namespace=f"tenant-{name[-1]}", labels={"a": node})
    match what:
        case "node":
            state.set_node(make_node(node, labels={"b": name}))
        case "no node":
            state.drop_node(node)
        case "pod":
            placed = make_pod(name, namespace=pod.namespace, node=node if size else "")
            state.set_pod(placed, failure=node, size=size)
        case "no pod":
            state.drop_pod(pod.uid)
        case "claim":
            state.claim(pod, node)
        case "assume":
            state.assume(pod, node)
        case "confirm":
            state.confirm(pod.uid)
        case "release":
            state.release(pod.uid)
        case "forget":
            state.forget(pod.uid)


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


@given(steps)
def test_no_table_keeps_what_is_gone(taken: list[Step]) -> None:
    now = [0.0]
    state = ClusterState(clock=lambda: now[0])
    for step in taken:
        take(state, step)
    for uid in {*state.known_pods(), *(each.uid for each in state.held())}:
        state.drop_pod(uid)
    for node in state.known_nodes():
        state.drop_node(node)
    now[0] = 1e6
    state.expire()
    left: dict[str, Any] = entries(state)
    for of_rows in ("_names", "_free"):  # at most as many as there were nodes at once
        assert left.pop(f"state.rows.{of_rows}") <= len(NODES)
    assert left == dict.fromkeys(left, 0), "something is kept"
