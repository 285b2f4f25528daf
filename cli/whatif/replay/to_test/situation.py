"""Finds a recorded cycle of a pod, and takes from the journal what the plugins saw in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cli.shared.given import namespace_and_name
from cli.whatif.replay.outcome import Outcome
from cli.whatif.replay.showing import time_of
from cli.whatif.replay.timeline import Recorded, Timeline
from gateway.journal.reading import find_segments, read_segment
from moorage.errors import ConfigurationError
from moorage.models import NodeManifest, ObjectKind, Pod, decode_node, decode_pod, encode
from moorage.snapshot import Snapshot
from moorage.v1 import journal_pb2 as pb

Objects = Mapping[ObjectKind, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A cluster, and what was decided in it.

    Attributes:
        recorded: The cycle.
        attempt: Which of the pod's attempts it is, and of how many.
        pod: The pod.
        nodes: The nodes by name.
        pods: The pods on them; each names its node.
        objects: The objects of further kinds.
        outcome: What was decided.
        names: The names of the nodes by row.
    """

    recorded: Recorded
    attempt: tuple[int, int]
    pod: Pod
    nodes: Mapping[str, NodeManifest]
    pods: Sequence[Pod]
    objects: Objects
    outcome: Outcome
    names: Mapping[int, str]

    def row_of(self, node: str) -> int:
        """Return the row of a node.

        Raises:
            ConfigurationError: The cluster had no such node.
        """
        found = next((row for row, name in self.names.items() if name == node), None)
        if found is None:
            known = ", ".join(sorted(self.names.values())[:10])
            raise ConfigurationError(f"there was no node {node!r}; some that were: {known}")
        return found


async def find_situation(
    journal: Path, pod: str, attempt: int | None, *, scored: bool
) -> Situation:
    """Return a cycle of a pod: of all its attempts in the journal the last, or that number.

    The state is that of its score phase if that is wanted, else that of its filter phase.

    Raises:
        ConfigurationError: There is none.
        JournalError: The journal is damaged.
    """
    namespace, name = namespace_and_name(pod)
    found = [
        (path, record)
        for path in find_segments(journal)
        for _, record in read_segment(path)
        if record.HasField("cycle") and _is_of(record.cycle, namespace, name)
    ]
    if not found:
        raise ConfigurationError(f"{journal} has no cycle of {pod}; see moorage journal show")
    number = len(found) if attempt is None else attempt
    if not 1 <= number <= len(found):
        attempts = ", ".join(f"{n} at {time_of(r.time)}" for n, (_, r) in enumerate(found, 1))
        raise ConfigurationError(f"{journal} has these attempts of {pod}: {attempts}")
    path, record = found[number - 1]
    timeline = Timeline()
    async for recorded in timeline.cycles([path]):
        if recorded.cycle.id == record.cycle.id:
            if scored and recorded.cycle.HasField("scores"):
                await timeline.reach(recorded.cycle.scores.generation)
            return _situation(recorded, timeline.replica.snapshot, (number, len(found)))
    causes = ", ".join(timeline.missing.causes) or "it is not complete"
    raise ConfigurationError(f"attempt {number} of {pod} cannot be made again: {causes}")


def _is_of(cycle: pb.JournalCycle, namespace: str, name: str) -> bool:
    pod = decode_pod(cycle.pod)
    return (pod.namespace, pod.name) == (namespace, name)


def _situation(recorded: Recorded, snapshot: Snapshot, attempt: tuple[int, int]) -> Situation:
    cycle = recorded.cycle
    rows = snapshot.nodes().rows.tolist()
    manifests = {row: node.manifest for row in rows if (node := snapshot.node_at(row)) is not None}
    manifests |= {each.row: decode_node(each.json) for each in cycle.overrides}
    pod = recorded.pod
    gone = {pod.uid, *cycle.excluded_pods}
    pods = [
        replace(each, spec=replace(each.spec, node_name=manifests[row].name))
        for row in rows
        for each in snapshot.pods_at(row)
        if each.uid not in gone
    ]
    return Situation(
        recorded=recorded,
        attempt=attempt,
        pod=pod,
        nodes={manifest.name: manifest for manifest in manifests.values()},
        pods=pods,
        objects={kind: _all(snapshot, kind) for kind in snapshot.objects.counts},
        outcome=recorded.outcome,
        names={row: manifest.name for row, manifest in manifests.items()},
    )


def _all(snapshot: Snapshot, kind: ObjectKind) -> Sequence[Mapping[str, Any]]:
    selected = snapshot.objects.select(kind, dict)
    return [msgspec.json.decode(encode(obj)) for obj in selected]
