"""The verdicts and scores of each node: for which attempts, and which node a row had then."""

import msgspec
import numpy as np

from gateway.cluster.rows import Rows
from gateway.cycle import Cycle, GivenNode, NodeSet
from gateway.cycle.answers import PhaseScores, PhaseVerdicts
from gateway.cycle.cycle import Names
from gateway.decisions.nodes import KeptArrays, NodeArrays
from moorage.execution import PluginScores
from moorage.models import Metadata, NodeManifest, decode_pod
from tests.gateway.decisions.test_decisions import decision

NODES = 1000
POD = decode_pod(b'{"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}}')


def bitmap(*rows: int) -> bytes:
    return sum(1 << row for row in rows).to_bytes(max(rows) // 8 + 1, "little")


def verdicts(*rows: int) -> PhaseVerdicts:
    return PhaseVerdicts(bitmap=bitmap(*rows), codes=np.zeros(len(rows), np.uint16), reasons=())


def scores(*rows: int) -> PhaseScores:
    ones = np.ones(len(rows))
    plugin = PluginScores(plugin="P", weight=1, raw=ones, normalized=ones.astype(np.float32))
    return PhaseScores(
        generation=1, bitmap=bitmap(*rows), totals=ones.astype(np.float32), plugins=[plugin]
    )


def cycle(
    number: int,
    *rows: int,
    names: Names = (),
    names_after: Names | None = None,
    offered: NodeSet | None = None,
) -> Cycle:
    made = decision("p")
    made.id = str(number)
    return Cycle(
        pod=POD,
        pod_json=b"",
        nodes=offered or NodeSet([]),
        deadline=0,
        decision=made,
        verdicts=verdicts(*rows),
        scores=scores(*rows),
        names=names,
        names_after=names if names_after is None else names_after,
    )


def kept_of(last: Cycle) -> NodeArrays:
    kept = KeptArrays(count=1, memory=1 << 20)
    kept.on_cycle_end(last)
    arrays = kept.get(last.decision.id)
    assert arrays is not None
    return arrays


def test_the_newest_are_kept_within_a_count_and_an_amount_of_memory() -> None:
    rows, names = range(NODES), [f"n{row}" for row in range(NODES)]
    one = kept_of(cycle(0, *rows, names=names)).size
    assert 20 * NODES < one < 40 * NODES
    for count, memory, expected in ((3, 1 << 30, 3), (100, 5 * one, 5), (100, 0, 0), (0, one, 0)):
        kept = KeptArrays(count=count, memory=memory)
        for number in range(20):
            kept.on_cycle_end(cycle(number, *rows, names=names))
            assert kept.bytes <= memory
        found = [number for number in range(20) if kept.get(str(number)) is not None]
        assert len(found) == len(kept) >= expected
        assert found == list(range(20 - len(found), 20))


def test_scores_that_come_later_join_the_verdicts() -> None:
    kept = KeptArrays(count=10, memory=1 << 20)
    first, later = cycle(1, 0, 1, names=("a", "b")), cycle(1, 1, names=("a", "b"))
    first.scores, later.verdicts = None, None
    kept.on_cycle_end(first)
    kept.on_cycle_end(later)
    arrays = kept.get("1")
    assert arrays is not None
    assert arrays.verdicts is not None and first.verdicts is not None  # noqa: PT018
    assert arrays.scores is not None and later.scores is not None  # noqa: PT018
    assert arrays.verdicts.codes is first.verdicts.codes
    assert arrays.scores.totals is later.scores.totals
    assert (len(kept), kept.bytes) == (1, arrays.size)


def test_a_row_has_the_name_that_the_call_named() -> None:
    before, after = ("a", "b", "c"), ("a", "new", "c", "d")
    last = cycle(1, 0, 1, 3, names=before, names_after=after, offered=NodeSet(["a", "b", "d"]))
    assert kept_of(last).name_of() == {0: "a", 1: "b", 3: "d"}
    last = cycle(1, 0, 1, names=before, names_after=after, offered=NodeSet(["a", "new"]))
    assert last.scores is not None
    last.scores.totals[:] = (5, 7)
    arrays = kept_of(last)
    assert arrays.name_of() == {0: "a", 1: "new"}
    assert [arrays.total_of(name) for name in ("a", "new", "c", "other")] == [5, 7, None, None]


def test_nodes_that_only_the_call_brought_have_rows_behind_the_others() -> None:
    given = [GivenNode(manifest=NodeManifest(), raw=msgspec.Raw(b"{}"))] * 4
    offered = NodeSet(["x", "b", "y", "a"], given=given)
    last = cycle(1, 0, 1, 2, 3, names=("a", "b"), offered=offered)
    assert kept_of(last).name_of() == {0: "a", 1: "b", 2: "x", 3: "y"}


def test_cycles_share_the_names_until_a_node_comes_or_goes() -> None:
    rows = Rows()
    for name in "ab":
        rows.put(NodeManifest(metadata=Metadata(name=name)))
    before = rows.names
    rows.put(NodeManifest(metadata=Metadata(name="a", labels={"changed": "yes"})))
    assert rows.names is before
    rows.free("a")
    assert (before, rows.names) == (("a", "b"), (None, "b"))
    rows.put(NodeManifest(metadata=Metadata(name="c")))
    assert rows.names == ("c", "b")
