"""What `moorage journal show` prints: the segments of a journal, and its newest cycles."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cli.shared.screen import Screen
from gateway.journal.segments import JournalError, Torn, find_segments, read_segment
from gateway.whatif.timeline import recorded_outcome
from moorage.models import decode_node, decode_pod
from moorage.v1 import journal_pb2 as pb

KINDS = {
    pb.JOURNAL_CYCLE_KIND_FILTER: "filter",
    pb.JOURNAL_CYCLE_KIND_SCORE: "score",
    pb.JOURNAL_CYCLE_KIND_PREEMPT: "preempt",
}

SHOWN = 3
"""Best nodes of a cycle that are shown."""


@dataclass(slots=True)
class Segment:
    """What is in a segment."""

    name: str
    size: int
    begin: float = 0.0
    end: float = 0.0
    cycles: int = 0
    binds: int = 0
    changes: int = 0
    policies: list[str] = field(default_factory=list)
    dropped: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A recorded cycle; `best` has the nodes that share the best total, or that are feasible."""

    id: int
    time: float
    kind: str
    pod: str
    nodes: int
    feasible: int
    best: list[str]
    error: str


@dataclass(frozen=True, slots=True)
class Contents:
    """The segments of a journal, and its newest cycles."""

    segments: list[Segment]
    cycles: list[Cycle]


def read(journal: Path, pod: str, limit: int) -> Contents:
    """Return the segments, and the newest cycles, perhaps only those of a pod.

    Raises:
        JournalError: There is no journal.
    """
    newest: deque[Cycle] = deque(maxlen=limit)
    segments = [_read(path, pod, newest) for path in find_segments(journal)]
    return Contents(segments, list(newest))


def show(found: Contents, screen: Screen, *, wide: bool) -> None:
    """Write tables; of several best nodes the first three unless it is *wide*."""
    header = ("SEGMENT", "MIB", "FROM", "TO", "CYCLES", "BINDS", "CHANGES", "POLICY", "DROPPED", "")
    screen.table(header, list(map(_row, found.segments)))
    if found.cycles:
        screen.write("")
        rows = [_cells(each, sys.maxsize if wide else SHOWN) for each in found.cycles]
        screen.table(("CYCLE", "TIME", "KIND", "POD", "NODES", "FEASIBLE", "BEST"), rows)


def _read(path: Path, pod: str, newest: deque[Cycle]) -> Segment:
    segment, torn = Segment(path.name, path.stat().st_size), Torn()
    names: dict[int, str] = {}
    try:
        for _, record in read_segment(path, torn):
            segment.begin = segment.begin or record.time
            segment.end = record.time
            _count(segment, record, names)
            if record.HasField("cycle"):
                newest.extend(_cycle(record, pod, names))
    except JournalError as error:
        segment.problem = str(error)
    segment.problem = segment.problem or torn.note
    return segment


def _count(segment: Segment, record: pb.JournalRecord, names: dict[int, str]) -> None:
    segment.cycles += record.HasField("cycle")
    segment.binds += record.HasField("bind")
    segment.changes += record.HasField("state")
    names.update((node.row, _name(node.json)) for node in record.state.nodes)
    if record.HasField("policy") and record.policy.revision not in segment.policies:
        segment.policies.append(record.policy.revision)
    if record.HasField("header"):
        segment.dropped = sum(record.header.dropped.values())


def _cycle(record: pb.JournalRecord, wanted: str, names: dict[int, str]) -> Iterator[Cycle]:
    cycle = record.cycle
    pod = decode_pod(cycle.pod)
    name = f"{pod.namespace}/{pod.name}"
    if wanted and name != wanted:
        return
    outcome = recorded_outcome(cycle)
    feasible = outcome.rows[outcome.feasible]
    best = outcome.rows[outcome.best] if outcome.scores or len(feasible) == 1 else feasible[:0]
    yield Cycle(
        id=cycle.id,
        time=record.time,
        kind=KINDS.get(cycle.kind, ""),
        pod=name,
        nodes=len(outcome.rows),
        feasible=len(feasible),
        best=[names.get(row, "") for row in best.tolist()],
        error=cycle.error,
    )


def _cells(cycle: Cycle, most: int) -> Sequence[str]:
    return (
        f"{cycle.id}",
        time_of(cycle.time),
        f"failed: {cycle.error}" if cycle.error else cycle.kind,
        cycle.pod,
        f"{cycle.nodes}",
        f"{cycle.feasible}",
        " ".join(cycle.best[:most]) + " ..." * (len(cycle.best) > most),
    )


def _row(segment: Segment) -> Sequence[str]:
    return (
        segment.name,
        f"{segment.size / (1 << 20):.1f}",
        time_of(segment.begin),
        time_of(segment.end),
        f"{segment.cycles:,}",
        f"{segment.binds:,}",
        f"{segment.changes:,}",
        " ".join(segment.policies),
        f"{segment.dropped:,}",
        segment.problem,
    )


def time_of(seconds: float) -> str:
    """Return a time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ") if seconds else ""


def _name(content: bytes) -> str:
    return decode_node(content).name
