"""Runs the plugins of a policy on the state of a recorded cycle, in this process."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from cli.config.policies import Registries
from cli.whatif.replay.outcome import Outcome, Reason, bitmap_of
from cli.whatif.replay.timeline import Timeline
from moorage.errors import PluginFailedError, UnknownNameError
from moorage.execution import Supervisor
from moorage.models import decode_node, decode_pod
from moorage.v1 import journal_pb2 as pb
from moorage_host.plugins import CycleInput, PluginHost, Replica
from moorage_host.plugins.host import Policy
from moorage_host.policy import Kind
from moorage_host.policy.effective import EffectivePolicy, decode_effective, encode_effective
from services.filter.engine import run_filters
from services.scorer.engine import run_scores

FAILURES = (PluginFailedError, UnknownNameError, TimeoutError)
"""How a cycle fails."""

LEAST_BUDGET = 30.0
"""Seconds that each plugin may take: this machine may be slower than the one that recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a policy says filters and scorers run, as JSON text."""

    revision: str
    filter: bytes
    score: bytes


class Runner:
    """The running plugins of one policy."""

    def __init__(self, filters: Policy, scorers: Policy) -> None:
        """Run these."""
        self._filters = Replica()
        self._scorers = Replica()
        self._filters.policy, self._scorers.policy = filters, scorers

    async def filter(self, timeline: Timeline, cycle: pb.JournalCycle, outcome: Outcome) -> None:
        """Add the verdicts to an outcome, or why the cycle fails."""
        if not cycle.HasField("verdicts"):
            return
        work, supervisor = _input(cycle, cycle.verdicts.nodes), Supervisor()
        replica = self._on(timeline, self._filters)
        try:
            nodes, run = await replica.run(work, run_filters, supervisor)
        except FAILURES as error:
            outcome.error = str(error)
            return
        outcome.rows, outcome.codes = nodes.rows, run.codes
        outcome.reasons = [Reason(each.plugin, each.rejection.reason) for each in run.reasons]
        outcome.claimants = tuple(run.claimants)
        outcome.failures += [f"{p.plugin}: {p.failure}" for p in run.plugins if p.failure]

    def _to_score(self, cycle: pb.JournalCycle, outcome: Outcome) -> bytes:
        if cycle.kind == pb.JOURNAL_CYCLE_KIND_PREEMPT or cycle.plugin:
            return b""
        if not cycle.HasField("verdicts"):
            return cycle.scores.nodes
        feasible = outcome.feasible
        has_plugins = bool(self._scorers.policy.profile(cycle.profile).plugins)
        return bitmap_of(feasible) if has_plugins and len(feasible) > 1 else b""

    async def score(self, timeline: Timeline, cycle: pb.JournalCycle, outcome: Outcome) -> None:
        """Add the scores to an outcome with verdicts, or why the cycle fails."""
        nodes = b"" if outcome.error else self._to_score(cycle, outcome)
        if not nodes:
            return
        work, supervisor = _input(cycle, nodes), Supervisor()
        replica = self._on(timeline, self._scorers)
        try:
            found, run = await replica.run(work, run_scores, supervisor)
        except FAILURES as error:
            outcome.error = str(error)
            return
        outcome.failures += [f"{p.plugin}: {p.failure}" for p in run.plugins if p.failure]
        if run.totals is None:
            return
        outcome.scored, outcome.totals = found.rows, run.totals.astype(np.float32)
        outcome.raw = {each.plugin: each.raw for each in run.scores}

    def _on(self, timeline: Timeline, replica: Replica) -> Replica:
        replica.snapshot = timeline.replica.snapshot
        replica.generation = timeline.replica.generation
        return replica


class Runners:
    """Makes runners of policies, each once, with the plugins of this machine."""

    def __init__(self, registries: Registries) -> None:
        """Find plugins in *registries*."""
        self.registries = registries
        self._filters = PluginHost(registries["filter"])
        self._scorers = PluginHost(registries["score"])
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
            found = self._made[contents.revision] = Runner(filters, scorers)
        return found

    async def close(self) -> None:
        """Stop the plugins."""
        await self._filters.close()
        await self._scorers.close()


@asynccontextmanager
async def running(registries: Registries) -> AsyncIterator[Runners]:
    """Make runners whose plugins are stopped at the end of the block."""
    runners = Runners(registries)
    try:
        yield runners
    finally:
        await runners.close()


def versions_differ(policy: pb.JournalPolicy, registries: Registries) -> Sequence[str]:
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
        replace(
            profile,
            plugins=tuple(
                replace(plugin, time_budget_seconds=LEAST_BUDGET) for plugin in profile.plugins
            ),
        )
        for profile in policy.profiles
    )
    return encode_effective(replace(policy, profiles=profiles))


def _input(cycle: pb.JournalCycle, nodes: bytes) -> CycleInput:
    return CycleInput(
        profile=cycle.profile,
        pod=decode_pod(cycle.pod),
        candidates=nodes or b"\0",
        plugin=cycle.plugin,
        overrides={each.row: decode_node(each.json) for each in cycle.overrides},
        excluded_pods=tuple(cycle.excluded_pods),
    )
