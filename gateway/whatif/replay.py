"""Replays a journal: goes through its cycles, decides them again, and compares.

What runs the plugins is given: a gateway has no engines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from gateway.cycle.nodes import bitmap_of, rows_of
from gateway.journal.segments import find_segments, read_segment
from gateway.whatif.comparing import Comparison, Outcome
from gateway.whatif.replay_report import Findings, Report
from gateway.whatif.timeline import Recorded, Timeline
from moorage.errors import PluginFailedError, UnknownNameError
from moorage.execution import Supervisor, owner_of
from moorage.models import decode_node, decode_pod
from moorage.v1 import journal_pb2 as pb
from moorage_host.plugins import CycleInput, PluginHost
from moorage_host.plugins.host import Policy
from moorage_host.plugins.registry import Registry
from moorage_host.plugins.replica import Engine
from moorage_host.policy import Kind, ResolvedPolicy
from moorage_host.policy.effective import EffectivePolicy, decode_effective, encode_effective

FAILURES = (PluginFailedError, UnknownNameError, TimeoutError)
"""How a cycle fails."""

LEAST_BUDGET = 30.0
"""Seconds that each plugin may take: this machine may be slower than the one that recorded."""

Running = tuple[Policy, Policy]
"""The running filter and score plugins of a policy."""

Binds = dict[tuple[str, int], str]
"""Where pods were bound, by their uid and the number of the cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """What decides cycles again.

    Attributes:
        registries: The plugins of this machine, by kind.
        filter: Runs filter plugins; its outcome has verdicts.
        score: Runs score plugins; its outcome has scores.
    """

    registries: Mapping[Kind, Registry]
    filter: Engine[Outcome]
    score: Engine[Outcome]


class Replay:
    """A replay of some segments."""

    def __init__(self, journal: Path, engines: Engines, *, examples: int) -> None:
        """Read a folder, or one file of it; keep so many examples of each class.

        Raises:
            JournalError: There is no journal, or it is damaged.
        """
        self.paths = find_segments(journal)
        self._engines = engines
        self._hosts = [PluginHost(engines.registries[kind]) for kind in ("filter", "score")]
        self._running: dict[str, Running] = {}
        self._findings = Findings(examples)
        self._binds, self.total = _scan(self.paths)
        self._timeline = Timeline()
        self._differ: dict[str, Sequence[str]] = {}

    async def run(self, policy: ResolvedPolicy | None, progress: Callable[[int], None]) -> Report:
        """Compare what was recorded with what *policy*, or the recorded one, would have decided.

        Raises:
            MoorageError: The journal is damaged, or a plugin is wrong.
        """
        new = None
        try:
            if policy is not None:
                contents = policy.for_kind("filter"), policy.for_kind("score")
                new = await self._run_policy(policy.revision, *contents)
            done = 0
            async for recorded in self._timeline.cycles(self.paths):
                await self._cycle(recorded, new)
                done += 1
                progress(done)
        finally:
            for host in self._hosts:
                await host.close()
        report = self._findings.finish(self._timeline.missing)
        report.segments = len(self.paths)
        report.policy = Path(policy.source).name if policy is not None else "as recorded"
        return report

    async def _run_policy(self, revision: str, *contents: bytes) -> Running:
        """Return a policy's running plugins, which start once; raises ConfigurationError."""
        if revision not in self._running:
            pairs = zip(self._hosts, contents, strict=True)
            filters, scorers = [await host.use(revision, _with_time(c)) for host, c in pairs]
            self._running[revision] = filters, scorers
        return self._running[revision]

    async def _cycle(self, recorded: Recorded, new: Running | None) -> None:
        policy, cycle = recorded.policy, recorded.cycle
        self._findings.note_time(recorded.time)
        differ = self._differ_of(policy)
        wanted = [] if new is None else [new]
        if new is None or not differ:
            # With the recorded code, two replays are compared: what cannot be made again is
            # missing in both.
            contents = policy.filter.json, policy.score.json
            same = await self._run_policy(policy.revision, *contents)
            wanted = [same] if new in (None, same) else [same, *wanted]
        outcomes = await self._outcomes(wanted, cycle)
        snapshot = self._timeline.replica.snapshot
        given = {each.row: decode_node(each.json).name for each in cycle.overrides}

        def name_at(row: int) -> str | None:
            node = snapshot.node_at(row)
            return given.get(row) or (node.name if node else None)

        before = recorded.outcome
        if not differ:
            self._findings.check(Comparison(before=before, after=outcomes[0], name_at=name_at))
            before = outcomes[0]
        bound = snapshot.row_of(self._binds.get((recorded.pod.uid, cycle.id), ""))
        found = Comparison(before=before, after=outcomes[-1], name_at=name_at)
        self._findings.compared(recorded, found, bound)

    async def _outcomes(
        self, policies: Sequence[Running], cycle: pb.JournalCycle
    ) -> Sequence[Outcome]:
        """Decide a cycle by each policy, in the states that its phases saw."""
        filtered = [await self._filter(filters, cycle) for filters, _ in policies]
        if cycle.HasField("scores"):
            await self._timeline.reach(cycle.scores.generation)
        pairs = zip(policies, filtered, strict=True)
        return [await self._score(scorers, cycle, outcome) for (_, scorers), outcome in pairs]

    async def _filter(self, policy: Policy, cycle: pb.JournalCycle) -> Outcome:
        """Return the verdicts, or why the cycle fails."""
        if not cycle.HasField("verdicts"):
            return Outcome(rows=rows_of(cycle.scores.nodes))
        try:
            return await self._run(policy, self._engines.filter, cycle, cycle.verdicts.nodes)
        except FAILURES as error:
            return Outcome(rows=rows_of(b""), error=str(error))

    async def _score(self, policy: Policy, cycle: pb.JournalCycle, outcome: Outcome) -> Outcome:
        """Return an outcome with scores, or why the cycle fails."""
        if outcome.error or cycle.kind == pb.JOURNAL_CYCLE_KIND_PREEMPT or cycle.plugin:
            return outcome
        nodes = outcome.rows[outcome.feasible]
        if len(nodes) < (2 if cycle.HasField("verdicts") else 1):
            return outcome  # nothing to rank; a call for scores alone is about any number
        try:
            if not policy.profile(cycle.profile).plugins:
                return outcome
            scored = await self._run(policy, self._engines.score, cycle, bitmap_of(nodes))
        except FAILURES as error:
            return replace(outcome, error=str(error))
        failures = [*outcome.failures, *scored.failures]
        return replace(outcome, scores=scored.scores, failures=failures)

    async def _run(
        self, policy: Policy, engine: Engine[Outcome], cycle: pb.JournalCycle, nodes: bytes
    ) -> Outcome:
        pod = decode_pod(cycle.pod)
        work = CycleInput(
            profile=cycle.profile,
            pod=pod,
            candidates=nodes or b"\0",
            plugin=cycle.plugin,
            overrides={each.row: decode_node(each.json) for each in cycle.overrides},
            excluded_pods=tuple(cycle.excluded_pods),
        )
        self._timeline.replica.policy = policy
        supervisor = Supervisor(owner=owner_of(pod))
        _, outcome = await self._timeline.replica.run(work, engine, supervisor)
        return outcome

    def _differ_of(self, policy: pb.JournalPolicy) -> Sequence[str]:
        if policy.revision not in self._differ:
            differ = _other_versions(policy, self._engines.registries)
            self._differ[policy.revision] = differ
            if differ:
                self._findings.report.checked = False
                self._findings.report.notes.append(
                    f"other code than recorded: {', '.join(differ)}; so what was recorded is "
                    "compared, and not checked to be reproducible"
                )
        return self._differ[policy.revision]


def _scan(paths: Sequence[Path]) -> tuple[Binds, int]:
    """Return the binds of a journal, which come after their cycles, and the number of cycles."""
    binds: Binds = {}
    cycles = 0
    for path in paths:
        for _, record in read_segment(path):
            cycles += record.HasField("cycle")
            if record.HasField("bind") and not record.bind.error:
                binds[record.bind.uid, record.bind.cycle] = record.bind.node
    return binds, cycles


def _other_versions(policy: pb.JournalPolicy, registries: Mapping[Kind, Registry]) -> Sequence[str]:
    """Return the enabled plugins whose code here is not the recorded one, or that are not here."""
    recorded: dict[tuple[str, str], set[str]]
    recorded = {(each.kind, each.name): set() for each in policy.plugins}
    for each in policy.plugins:
        recorded[each.kind, each.name].add(each.version)
    differ: dict[str, None] = {}
    contents: Mapping[Kind, bytes] = {"filter": policy.filter.json, "score": policy.score.json}
    for kind, content in contents.items():
        for name in _enabled(decode_effective(content)):
            here = registries[kind].get(name)
            if here is None or recorded.get((kind, name)) != {here.version}:
                differ[name] = None
    return list(differ)


def _enabled(policy: EffectivePolicy) -> list[str]:
    return [plugin.name for profile in policy.profiles for plugin in profile.plugins]


def _with_time(content: bytes) -> bytes:
    """Return a policy in which plugins may take longer."""
    policy = decode_effective(content)
    profiles = tuple(
        structs.replace(
            profile,
            plugins=tuple(
                structs.replace(plugin, time_budget_seconds=LEAST_BUDGET)
                for plugin in profile.plugins
            ),
        )
        for profile in policy.profiles
    )
    return encode_effective(structs.replace(policy, profiles=profiles))
