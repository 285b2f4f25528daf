"""Replays a journal: goes through its cycles, decides them again, and compares.

What runs the plugins is given: a gateway has no engines.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from gateway.journal.reading import find_segments, read_segment
from gateway.whatif.comparing import Comparison
from gateway.whatif.outcome import Outcome, bitmap_of, rows_of
from gateway.whatif.replay_report import Findings, Report
from gateway.whatif.timeline import Recorded, Timeline
from moorage.errors import PluginFailedError, UnknownNameError
from moorage.execution import Supervisor
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a policy says filters and scorers run, as JSON text."""

    revision: str
    filter: bytes
    score: bytes


class Runner:
    """The running plugins of one policy."""

    def __init__(self, filters: Policy, scorers: Policy, engines: Engines) -> None:
        self._filters = filters
        self._scorers = scorers
        self._engines = engines

    async def filter(self, timeline: Timeline, cycle: pb.JournalCycle) -> Outcome:
        """Return the verdicts, or why the cycle fails."""
        if not cycle.HasField("verdicts"):
            return Outcome(rows=rows_of(cycle.scores.nodes))
        timeline.replica.policy = self._filters
        work = _input(cycle, cycle.verdicts.nodes)
        try:
            _, outcome = await timeline.replica.run(work, self._engines.filter, Supervisor())
        except FAILURES as error:
            return Outcome(rows=rows_of(b""), error=str(error))
        return outcome

    async def score(self, timeline: Timeline, cycle: pb.JournalCycle, outcome: Outcome) -> Outcome:
        """Return an outcome with scores, or why the cycle fails."""
        nodes = b"" if outcome.error else self._to_score(cycle, outcome)
        if not nodes:
            return outcome
        timeline.replica.policy = self._scorers
        work = _input(cycle, nodes)
        try:
            _, scored = await timeline.replica.run(work, self._engines.score, Supervisor())
        except FAILURES as error:
            return replace(outcome, error=str(error))
        failures = [*outcome.failures, *scored.failures]
        return replace(outcome, scores=scored.scores, failures=failures)

    def _to_score(self, cycle: pb.JournalCycle, outcome: Outcome) -> bytes:
        if cycle.kind == pb.JOURNAL_CYCLE_KIND_PREEMPT or cycle.plugin:
            return b""
        if not cycle.HasField("verdicts"):
            return cycle.scores.nodes
        feasible = outcome.rows[outcome.feasible]
        has_plugins = bool(self._scorers.profile(cycle.profile).plugins)
        return bitmap_of(feasible) if has_plugins and len(feasible) > 1 else b""


class Runners:
    """Makes runners of policies, each once, with the plugins of this machine."""

    def __init__(self, engines: Engines) -> None:
        self.engines = engines
        self._filters = PluginHost(engines.registries["filter"])
        self._scorers = PluginHost(engines.registries["score"])
        self._made: dict[str, Runner] = {}

    async def of(self, contents: Contents) -> Runner:
        """Return the runner of a policy.

        Raises:
            ConfigurationError: A plugin is not there, or refuses its arguments.
        """
        found = self._made.get(contents.revision)
        if found is None:
            revision = contents.revision
            filters = await self._filters.use(revision, _with_time(contents.filter))
            scorers = await self._scorers.use(revision, _with_time(contents.score))
            found = self._made[revision] = Runner(filters, scorers, self.engines)
        return found

    async def close(self) -> None:
        """Stop the plugins."""
        await self._filters.close()
        await self._scorers.close()


@asynccontextmanager
async def _running(engines: Engines) -> AsyncIterator[Runners]:
    """Make runners whose plugins are stopped at the end of the block."""
    runners = Runners(engines)
    try:
        yield runners
    finally:
        await runners.close()


class Replay:
    """A replay of some segments."""

    def __init__(self, journal: Path, engines: Engines, *, examples: int) -> None:
        """Read a folder, or one file of it; keep so many examples of each class.

        Raises:
            JournalError: There is no journal, or it is damaged.
        """
        self.paths = find_segments(journal)
        self._engines = engines
        self._findings = Findings(examples)
        self._binds, self.total = _scan(self.paths)
        self._timeline = Timeline()
        self._new: Contents | None = None
        self._differ: dict[str, Sequence[str]] = {}

    async def run(self, policy: ResolvedPolicy | None, progress: Callable[[int], None]) -> Report:
        """Compare what was recorded with what *policy*, or the recorded one, would have decided.

        Raises:
            MoorageError: The journal is damaged, or a plugin is wrong.
        """
        if policy is not None:
            self._new = Contents(
                revision=policy.revision,
                filter=policy.for_kind("filter"),
                score=policy.for_kind("score"),
            )
        async with _running(self._engines) as runners:
            done = 0
            async for recorded in self._timeline.cycles(self.paths):
                await self._cycle(recorded, runners)
                done += 1
                progress(done)
        report = self._findings.finish(self._timeline.missing)
        report.segments = len(self.paths)
        report.policy = Path(policy.source).name if policy is not None else "as recorded"
        return report

    async def _cycle(self, recorded: Recorded, runners: Runners) -> None:
        policy, cycle = recorded.policy, recorded.cycle
        self._findings.note_time(recorded.time)
        differ = self._differ_of(policy)
        same = Contents(
            revision=policy.revision, filter=policy.filter.json, score=policy.score.json
        )
        new = self._new or same
        # With the recorded code, two replays are compared: what cannot be made again is missing
        # in both.
        wanted = [new] if differ else list({each.revision: each for each in (same, new)}.values())
        outcomes = await self._outcomes([await runners.of(each) for each in wanted], cycle)
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
        self, runners: Sequence[Runner], cycle: pb.JournalCycle
    ) -> Sequence[Outcome]:
        timeline = self._timeline
        filtered = [await runner.filter(timeline, cycle) for runner in runners]
        if cycle.HasField("scores"):
            await timeline.reach(cycle.scores.generation)
        pairs = zip(runners, filtered, strict=True)
        return [await runner.score(timeline, cycle, outcome) for runner, outcome in pairs]

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


def _input(cycle: pb.JournalCycle, nodes: bytes) -> CycleInput:
    return CycleInput(
        profile=cycle.profile,
        pod=decode_pod(cycle.pod),
        candidates=nodes or b"\0",
        plugin=cycle.plugin,
        overrides={each.row: decode_node(each.json) for each in cycle.overrides},
        excluded_pods=tuple(cycle.excluded_pods),
    )
