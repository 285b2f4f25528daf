"""Replays a journal: goes through its cycles, runs both policies, and compares."""

from collections.abc import Callable, Sequence
from pathlib import Path

from cli.config.policies import load_registries, resolve_file, unused_plugins
from cli.whatif.replay.outcome import Outcome
from cli.whatif.replay.report import Findings, Report
from cli.whatif.replay.running import Contents, Runner, Runners, running, versions_differ
from cli.whatif.replay.timeline import Recorded, Timeline
from gateway.journal.reading import find_segments, read_segment
from moorage.v1 import journal_pb2 as pb

Binds = dict[tuple[str, int], str]
"""Where pods were bound, by their uid and the number of the cycle."""


class Replay:
    """A replay of some segments."""

    def __init__(self, journal: Path, *, examples: int) -> None:
        """Read a folder, or one file of it; keep so many examples of each class.

        Raises:
            JournalError: There is no journal, or it is damaged.
        """
        self.paths = find_segments(journal)
        self._findings = Findings(examples)
        self._binds, self.total = _scan(self.paths)
        self._timeline = Timeline()
        self._new: Contents | None = None
        self._differ: dict[str, Sequence[str]] = {}

    async def run(
        self, config: Path | None, plugins: Sequence[Path], progress: Callable[[int], None]
    ) -> Report:
        """Compare what was recorded with what *config* and *plugins* would have decided.

        Raises:
            MoorageError: The journal is damaged, or the policy or a plugin is wrong.
        """
        registries = load_registries(plugins)
        report = self._findings.report
        report.segments = len(self.paths)
        async with running(registries) as runners:
            if config is not None:
                resolved = resolve_file(config, registries)
                unused = unused_plugins(resolved, registries)
                report.notes += [*resolved.warnings, *(f"plugin {each}" for each in unused)]
                self._new = Contents(
                    revision=resolved.revision,
                    filter=resolved.for_kind("filter"),
                    score=resolved.for_kind("score"),
                )
            done = 0
            async for recorded in self._timeline.cycles(self.paths):
                await self._cycle(recorded, runners)
                done += 1
                progress(done)
        report.policy = config.name if config else "as recorded"
        return self._findings.finish(self._timeline.missing)

    async def _cycle(self, recorded: Recorded, runners: Runners) -> None:
        policy, cycle = recorded.policy, recorded.cycle
        self._findings.note_time(recorded.time)
        differ = self._differ_of(policy, runners)
        before = recorded.outcome
        same = Contents(
            revision=policy.revision, filter=policy.filter.json, score=policy.score.json
        )
        new = self._new or same
        # With the recorded code, two replays are compared: what cannot be made again is missing
        # in both.
        wanted = [new] if differ else list({each.revision: each for each in (same, new)}.values())
        outcomes = await self._outcomes([await runners.of(each) for each in wanted], cycle)
        if not differ:
            self._findings.check(before, outcomes[0])
            before = outcomes[0]
        bound = self._binds.get((recorded.pod.uid, cycle.id), "")
        snapshot = self._timeline.replica.snapshot
        self._findings.compare(recorded, before, outcomes[-1], snapshot, bound)

    async def _outcomes(
        self, runners: Sequence[Runner], cycle: pb.JournalCycle
    ) -> Sequence[Outcome]:
        timeline, outcomes = self._timeline, [Outcome() for _ in runners]
        for runner, outcome in zip(runners, outcomes, strict=True):
            await runner.filter(timeline, cycle, outcome)
        if cycle.HasField("scores"):
            await timeline.reach(cycle.scores.generation)
        for runner, outcome in zip(runners, outcomes, strict=True):
            await runner.score(timeline, cycle, outcome)
        return outcomes

    def _differ_of(self, policy: pb.JournalPolicy, runners: Runners) -> Sequence[str]:
        if policy.revision not in self._differ:
            differ = self._differ[policy.revision] = versions_differ(policy, runners.registries)
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
