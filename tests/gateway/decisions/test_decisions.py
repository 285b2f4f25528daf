"""What is remembered of decisions, and for how long."""

from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest

from gateway.cluster.rows import Rows
from gateway.cycle import Cycle, GivenNode, NodeSet
from gateway.cycle.answers import PhaseScores, PhaseVerdicts
from gateway.cycle.cycle import Names
from gateway.cycle.decision import BindRecord, Decision
from gateway.decisions.log import DecisionLog
from gateway.decisions.nodes import KeptArrays, NodeArrays
from moorage.execution import PluginScores
from moorage.models import Metadata, NodeManifest, decode_pod

NOW = datetime.now(UTC)


def decision(pod: str, uid: str = "u", error: str = "") -> Decision:
    return Decision(
        namespace="default",
        pod=pod,
        uid=uid,
        time=NOW,
        profile="moorage",
        error=error,
    )


def shown(log: DecisionLog, pod: str) -> list[dict[str, object]]:
    return [msgspec.to_builtins(attempt) for attempt in log.attempts("default", pod)]


def test_the_pods_that_were_decided_on_last_are_kept_with_their_newest_attempts() -> None:
    log = DecisionLog(pods=2, attempts=2)
    for number, pod in enumerate(("a", "b", "a", "a", "c")):
        log.add(decision(pod, error=str(number)))
    assert [attempt["error"] for attempt in shown(log, "a")] == ["3", "2"], "the newest attempts"
    assert shown(log, "b") == []
    assert log.latest("default", "a", "the uid of another pod") is None
    assert len(log) == 2


def test_decisions_take_a_bounded_amount_of_memory() -> None:
    log = DecisionLog(pods=1000, attempts=5, memory=20_000, unpacked=2)
    for number in range(300):
        log.add(decision(f"p{number}", error="x" * 1000))
        assert log.packed_bytes <= 20_000
    assert [log.attempts("default", f"p{number}") == [] for number in (0, 280)] == [True, True]
    assert len(shown(log, "p299")) == len(shown(log, "p290")) == 1
    log = DecisionLog(pods=1000, attempts=5, memory=0, unpacked=2)
    for number in range(10):
        log.add(decision(f"p{number}"))
    assert (len(log.all()), log.packed_bytes) == (2, 0)


def test_attempts_on_a_pod_are_numbered_and_linked() -> None:
    log = DecisionLog(pods=10, attempts=3, unpacked=0)
    made = [decision("p"), decision("p"), decision("p"), decision("p", uid="other")]
    log.add(made[0])
    log.add(made[1])
    log.add(made[2], again=True)
    log.add(made[3])
    assert [each.attempt for each in made] == [1, 2, 2, 1]
    assert [each.previous for each in made] == ["", made[0].id, made[1].id, ""]
    assert len({each.id for each in made}) == 4
    assert [each.id for each in log.attempts("default", "p")] == [each.id for each in made[:0:-1]]
    assert [log.number_of(each.id) for each in made] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "change", ["1", "-1", "{id}x", "{prefix}-", "{prefix}-0", "{prefix}-2", "{prefix}-01"]
)
def test_what_is_no_id_of_this_log_has_no_number(change: str) -> None:
    log, made = DecisionLog(pods=10, attempts=3), decision("p")
    log.add(made)
    prefix = made.id.partition("-")[0]
    assert log.number_of(change.format(id=made.id, prefix=prefix)) is None
    assert DecisionLog(pods=1, attempts=1).number_of(made.id) is None


def test_what_is_written_after_a_decision_was_packed_is_kept_when_it_is_packed_again() -> None:
    log = DecisionLog(pods=100, attempts=2, memory=1 << 20, unpacked=1)
    log.add(decision("a"))
    for _ in range(3):
        log.add(decision("b"))
        assert log.latest("default", "a", "u") is not None
    latest = log.latest("default", "a", "u")
    assert latest is not None
    latest.bind = BindRecord(node="n1", seconds=0.5)
    log.add(decision("c"))
    log.add(decision("d"))
    assert shown(log, "a")[0]["bind"] == {"node": "n1", "seconds": 0.5}
    kept = sum(each.packed_bytes for each in log.all())
    assert log.packed_bytes == kept


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
