from collections.abc import Callable

import numpy as np
import pytest

from moorage import NodeManifest
from moorage.snapshot import Snapshot
from moorage.snapshot.columns.encoded import MAX_ENCODED_COLUMNS, SLACK
from moorage.snapshot.snapshot import FIRST_CAPACITY
from moorage.testing import make_node, make_nodes, make_pod
from moorage.units.quantity import QuantityError


class Counting:
    """Reads a label, and counts how often."""

    def __init__(self, key: str = "zone") -> None:
        self.key = key
        self.calls = 0

    def __call__(self, node: NodeManifest) -> str | None:
        self.calls += 1
        return node.metadata.labels.get(self.key)


def test_bitmaps_select_rows_and_leave_out_those_without_a_node() -> None:
    snapshot = Snapshot()
    for row in (0, 2, 9):
        snapshot.set_node(row, make_node(f"n{row}"))
    assert snapshot.rows_of(bytes([0b00000111, 0b00000010])).tolist() == [0, 2, 9]
    assert snapshot.rows_of(bytes([0b00000110])).tolist() == [2]
    assert snapshot.rows_of(bytes(100)).tolist() == []
    assert snapshot.rows_of(b"\xff" * 100).tolist() == [0, 2, 9]


def test_a_property_is_read_again_only_when_its_node_changes() -> None:
    snapshot, read = Snapshot(), Counting()
    for row in range(5):
        snapshot.set_node(row, make_node(f"n{row}"))
    snapshot.nodes().encoded("zone", read)
    snapshot.nodes().encoded("zone", read)
    assert read.calls == 5
    snapshot.set_node(2, make_node("n2", labels={"zone": "a"}))
    assert read.calls == 6
    assert snapshot.nodes().encoded("zone", read).isin(("a",)).tolist() == [
        *(False, False, True),
        *(False, False),
    ]


def test_the_column_unused_for_longest_makes_room_and_comes_back_when_asked_for() -> None:
    snapshot, kept, evicted = Snapshot(), Counting(), Counting()
    snapshot.set_node(0, make_node("n0", labels={"zone": "a"}))
    snapshot.nodes().encoded("evicted", evicted)
    snapshot.nodes().encoded("kept", kept)
    for number in range(MAX_ENCODED_COLUMNS + 5):
        snapshot.nodes().encoded(number, Counting())
        snapshot.nodes().encoded("kept", kept)
    assert (kept.calls, evicted.calls) == (1, 1)
    snapshot.set_node(0, make_node("n0", labels={"zone": "b"}))
    assert evicted.calls == 1, "an evicted column is no longer kept up"
    assert snapshot.nodes().encoded("evicted", evicted).isin(("b",)).tolist() == [True]
    assert (kept.calls, evicted.calls) == (2, 2)


def test_values_that_no_node_has_any_more_are_forgotten_in_time() -> None:
    snapshot = Snapshot()
    for number in range(SLACK + 10):
        snapshot.set_node(0, make_node("n0", annotations={"load": str(number)}))
        column = snapshot.nodes().annotation("load")
        assert column.values[column.codes[0]] == str(number)
    assert len(column.values) < SLACK


def test_a_reader_that_fails_fails_whoever_asks_and_not_the_change_of_a_node() -> None:
    snapshot = Snapshot()
    read: Callable[[NodeManifest], float] = lambda node: float(node.metadata.labels["load"])  # noqa: E731
    snapshot.set_node(0, make_node("n0", labels={"load": "1"}))
    assert snapshot.nodes().encoded("load", read).map(lambda value: value).tolist() == [1]
    snapshot.set_node(1, make_node("n1"))
    with pytest.raises(KeyError, match="load"):
        snapshot.nodes().encoded("load", read)
    snapshot.set_node(1, make_node("n1", labels={"load": "2"}))
    assert snapshot.nodes().encoded("load", read).map(lambda value: value).tolist() == [1, 2]


def test_a_reader_interrupted_halfway_leaves_no_half_column() -> None:
    snapshot = Snapshot()
    for row in range(2):
        snapshot.set_node(row, make_node(f"n{row}", labels={"zone": "a"}))

    def interrupted(node: NodeManifest) -> str:
        if node.name == "n1":
            raise KeyboardInterrupt
        return "a"

    with pytest.raises(KeyboardInterrupt):
        snapshot.nodes().encoded("zone", interrupted)
    assert snapshot.nodes().encoded("zone", Counting()).isin(("a",)).tolist() == [True, True]


def test_functions_are_called_once_for_each_distinct_value_of_the_selection() -> None:
    nodes = make_nodes(*(make_node(f"n{i}", labels={"zone": f"z{i % 2}"}) for i in range(10)))
    seen: list[str | None] = []

    def see(value: str | None) -> int:
        seen.append(value)
        return 7

    assert nodes.label("zone").map(see).tolist() == [7] * 10
    assert sorted(seen, key=str) == [None, "z0", "z1"]
    seen.clear()
    assert nodes[:2].label("kubernetes.io/hostname").map(see).tolist() == [7, 7]
    assert seen == ["n0", "n1"]


def test_overrides_last_as_long_as_their_context_even_if_it_fails() -> None:
    snapshot = Snapshot()
    snapshot.set_node(0, make_node("n0", allocatable={"cpu": "1"}))
    snapshot.place_pod(0, make_pod("p", requests={"cpu": "1"}))
    override = {0: make_node("n0", allocatable={"cpu": "2"}), 70: make_node("n70")}

    def fail_amid_overrides() -> None:
        with snapshot.overlaid(override, [make_pod("p").uid, "unknown"]):
            nodes = snapshot.nodes()
            assert nodes.names == ["n0", "n70"]
            assert nodes.allocatable("cpu").tolist() == [2000, 4000]
            assert nodes.requested("cpu").tolist() == [0, 0]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_amid_overrides()
    nodes = snapshot.nodes()
    assert nodes.names == ["n0"]
    assert nodes.allocatable("cpu").tolist() == [1000]
    assert nodes.requested("cpu").tolist() == [1000]


def test_an_amount_that_is_no_quantity_changes_nothing() -> None:
    snapshot = Snapshot()
    snapshot.set_node(0, make_node("n0"))
    snapshot.place_pod(0, make_pod("p", requests={"cpu": "1"}))
    with pytest.raises(QuantityError):
        snapshot.set_node(0, make_node("n0", labels={"zone": "a"}, allocatable={"cpu": "many"}))
    with pytest.raises(QuantityError):
        snapshot.place_pod(0, make_pod("p", requests={"cpu": "many"}))
    node = snapshot.nodes()[0]
    assert "zone" not in node.labels
    assert (node.requested["cpu"], snapshot.pod_count) == (1000, 1)


def test_a_selection_keeps_its_order() -> None:
    snapshot = Snapshot()
    for row in range(4):
        snapshot.set_node(row, make_node(f"n{row}", allocatable={"cpu": str(row)}))
    nodes = snapshot.nodes(np.array([3, 1, 2]))
    assert nodes.names == ["n3", "n1", "n2"]
    assert nodes.allocatable("cpu").tolist() == [3000, 1000, 2000]
    assert nodes.where(np.array([True, False, True])).names == ["n3", "n2"]
    assert (nodes[1].name, nodes[1:].names) == ("n1", ["n1", "n2"])
    assert (nodes.position("n2"), nodes.position("n0"), nodes.position("x")) == (2, None, None)


def test_made_up_resources_cost_as_much_as_there_are_and_go_with_their_pods() -> None:
    snapshot = Snapshot()
    for row in range(200):
        snapshot.set_node(row, make_node(f"n{row}"))
    before = len(snapshot.requested), snapshot.requested.arrays
    pods = [make_pod(f"p{i}", requests={f"example.com/r{i}": "3", "cpu": "1"}) for i in range(300)]
    for index, pod in enumerate(pods):
        snapshot.place_pod(index % 200, pod)
    nodes = snapshot.nodes()
    assert nodes.requested("example.com/r207").tolist() == [0] * 7 + [3] + [0] * 192
    assert nodes[7].requested == {
        "example.com/r7": 3,
        "example.com/r207": 3,
        "cpu": 2000,
        "pods": 2,
    }
    assert snapshot.requested.arrays <= 3  # what many nodes have: cpu, pods
    for pod in pods:
        snapshot.remove_pod(pod.uid)
    assert (len(snapshot.requested), snapshot.requested.arrays) == before


def test_amounts_beyond_64_bits_leave_nothing_behind() -> None:
    snapshot = Snapshot()
    snapshot.set_node(0, make_node("n"))
    pods = [make_pod(f"p{i}", requests={"example.com/huge": "9E"}) for i in range(5)]
    for pod in pods:
        snapshot.place_pod(0, pod)
    for pod in pods:
        snapshot.remove_pod(pod.uid)
    assert snapshot.nodes()[0].requested == {}


def test_a_column_that_nobody_asks_for_does_not_grow_with_each_value() -> None:
    snapshot, read = Snapshot(), Counting("time")
    snapshot.set_node(0, make_node("n"))
    snapshot.encoded("time", read)
    for second in range(4 * SLACK):
        snapshot.set_node(0, make_node("n", labels={"time": str(second)}))
    calls = read.calls
    snapshot.set_node(0, make_node("n", labels={"time": "last"}))
    assert read.calls == calls
    assert snapshot.nodes().encoded("time", read).values == [None, "last"]


@pytest.mark.parametrize("row", [FIRST_CAPACITY - 1, FIRST_CAPACITY, 10 * FIRST_CAPACITY])
def test_rows_beyond_the_capacity_make_it_grow(row: int) -> None:
    snapshot = Snapshot()
    snapshot.set_node(0, make_node("n0", labels={"zone": "a"}, allocatable={"cpu": "1"}))
    before = snapshot.nodes().label("zone").codes
    snapshot.set_node(row, make_node("far", labels={"zone": "b"}, allocatable={"cpu": "2"}))
    nodes = snapshot.nodes()
    assert before.tolist() == [1]
    assert nodes.rows.tolist() == [0, row]
    assert nodes.allocatable("cpu").tolist() == [1000, 2000]
    assert nodes.label("zone").isin(("b",)).tolist() == [False, True]
