"""Runs shadows beside the cycles: an observer of cycles with a task that does the work.

One runs at a time, right after the cycle whose decision it is compared with, and only if no cycle
runs or waits. A cycle that comes meanwhile waits for it at most once in each phase. A replica that
idles is asked, about the same state as in the live cycle or not at all. Nothing is cached, hedged,
tried again or given up, and of what plugins claim or keep nothing is taken over.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog
from aiohttp import web
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle
from gateway.cycle.decision import Decision
from gateway.cycle.nodes import NodeRows
from gateway.policy.policy import PolicyHolder
from gateway.replicas.call import ReplicaAnswer
from gateway.replicas.crashes import NOBODY
from gateway.replicas.reading import NonsenseError, read_scores, read_verdicts
from gateway.replicas.session import Part
from gateway.replicas.set import Member, ReplicaSet
from gateway.scheduling.queue import CycleQueue
from gateway.settings import GatewaySettings
from gateway.whatif.comparing import Comparison, Outcome
from gateway.whatif.shadow_tally import COSTLY_SECONDS, Budget, ShadowMetrics, ShadowReport, Tally
from moorage_host.http.callers import ALL_NAMESPACES, may_read, readable
from moorage_host.policy import Kind as PluginKind
from moorage_host.policy import shadow_of
from moorage_host.rpc.stream import StreamLostError

AnswerT = TypeVar("AnswerT")


class StateChangedError(Exception):
    """No replica that idles can show the state of the live cycle any more, with its plugins."""


class ShadowFailedError(Exception):
    """A shadow gives no answer; the message says why, always the same for the same cause.

    Attributes:
        costly: Whether it took a replica from the live cycles, for a time or for good.
    """

    def __init__(self, problem: str, *, costly: bool = False) -> None:
        super().__init__(problem)
        self.costly = costly


async def ask(
    replicas: ReplicaSet,
    read: Callable[[ReplicaAnswer], AnswerT],
    cycle: Cycle,
    rows: NodeRows,
    generation: int,
    seconds: float,
) -> AnswerT:
    """Return what a shadow answers about *rows*, in the state of *generation*, read by *read*.

    The answer may take so many *seconds*.

    Raises:
        StateChangedError: No replica can serve that state.
        ShadowFailedError: No right answer comes in time.
    """
    member, name = _idle(replicas, generation), replicas.name
    part = Part(nodes=cycle.nodes, size=rows.count, rows=rows, profile=shadow_of(cycle.profile))
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        answer, _ = member.session.start(cycle, part, deadline, generation)
        member.unanswered[answer] = NOBODY, 0.0  # a shadow never counts against a pod
        answer.add_done_callback(partial(_on_end, member))
        result = (await answer).result
    except TimeoutError as error:
        problem = f"the {name} service does not answer in time"
        raise ShadowFailedError(problem, costly=True) from error
    except StreamLostError as error:
        raise ShadowFailedError(f"a {name} replica is lost", costly=True) from error
    if result.status.code:
        raise ShadowFailedError(result.status.message)
    for report in result.plugins:
        if report.failure:
            raise ShadowFailedError(f"plugin {report.plugin}: {report.failure}")
    try:
        return read(ReplicaAnswer(result, rows, ""))
    except NonsenseError as error:
        replicas.metrics.invalid()
        raise ShadowFailedError(f"the {name} service answers nonsense") from error


def _on_end(member: Member, answer: "asyncio.Future[Any]") -> None:
    """Note an answer, or the loss of a replica, while the shadow counts among the work there."""
    if not answer.cancelled() and isinstance(answer.exception(), StreamLostError):
        member.on_end(answer)
    member.unanswered.pop(answer, None)


def _idle(replicas: ReplicaSet, generation: int) -> Member:
    may_wait = replicas.share == "shadows"  # no cycle needs the replica
    if len({member.session.version for member in replicas.all}) == 1:  # else plugins may differ
        for member in replicas.all:
            is_idle = not member.unanswered and (may_wait or member.session.keeps_up)
            if is_idle and member.session.can_serve(generation):
                return member
    raise StateChangedError


log = structlog.get_logger()

INTERNAL = "internal error; the gateway's log has the cause"

PATH = "/shadow"


class Shadows:
    """The shadows of all profiles."""

    def __init__(
        self,
        settings: GatewaySettings,
        state: ClusterState,
        policy: PolicyHolder,
        queue: CycleQueue,
        filters: ReplicaSet,
        scorers: ReplicaSet,
        registry: CollectorRegistry,
    ) -> None:
        """Run shadows on the replicas of the live profiles, or on their own."""
        self._state = state
        self._policy = policy
        self._queue = queue
        self._filters = filters
        self._scorers = scorers
        self._own = [each for each in (filters, scorers) if each.share == "shadows"]
        policy.listeners.extend(each.begin_again for each in self._own)
        self._seconds = settings.shadow_timeout
        self._metrics = ShadowMetrics(registry)
        self._tallies: dict[str, Tally] = {}
        self._next: Cycle | None = None
        self._is_running = False
        self._given = asyncio.Event()

    def reports(self) -> list[ShadowReport]:
        """Return what is known about the shadows of the active policy."""
        return [self._tally(profile).report() for profile in self._policy.shadow_shares]

    def note(self) -> str | None:
        """Return which shadows have stopped themselves, for readiness."""
        stopped = ", ".join(each.profile for each in self.reports() if each.stopped)
        notes = [f"stopped after a failure, see {PATH}: {stopped}"] if stopped else []
        if self._policy.shadow_shares:
            notes += [each.why_none for each in self._own if not each.all]
        return "; ".join(notes) or None

    def on_cycle_end(self, cycle: Cycle) -> None:
        """Run the shadow of the cycle's profile next, if it may."""
        if cycle.profile not in self._policy.shadow_shares:
            return
        if cycle.plugin or cycle.excluded_pods or cycle.decision.preempt is not None:
            return  # not a scheduling cycle of the profile
        if cycle.verdicts is not None and cycle.verdicts.record.nominated_nodes:
            return  # the shadow would not count nominated pods
        tally = self._tally(cycle.profile)
        if tally.stopped:
            tally.skipped("stopped")
        elif _has_failed(cycle.decision):
            tally.skipped("live failed")
        elif self._is_running or self._next is not None:
            tally.skipped("busy")
        elif not tally.budget.allows:
            tally.skipped("share")
        else:
            self._next = cycle
            self._given.set()
            for member in (member for own in self._own for member in own.all):
                with suppress(StreamLostError):  # who keeps the session finds out
                    member.session.send_changes()  # the cycle's state, if it still is

    async def run(self) -> None:
        """Keep sessions with replicas of their own, and run what `on_cycle_end` is given."""
        async with asyncio.TaskGroup() as group:
            for own in self._own:
                group.create_task(own.run())
            await self._run_given()

    async def _run_given(self) -> None:
        while True:
            await self._given.wait()
            self._given.clear()
            cycle, self._next = self._next, None
            if cycle is None:
                continue
            if not self._queue.is_idle:
                self._tally(cycle.profile).skipped("busy")
                continue
            self._is_running, start = True, time.monotonic()
            try:
                await self._run(cycle)
            finally:
                self._is_running = False
                self._tally(cycle.profile).spent(time.monotonic() - start)

    async def _run(self, cycle: Cycle) -> None:
        start = time.monotonic()
        try:
            await self._compare(cycle)
        except StateChangedError:
            self._tally(cycle.profile).skipped("changed")
        except ShadowFailedError as error:
            costly = error.costly or time.monotonic() - start > COSTLY_SECONDS
            self._tally(cycle.profile).failed(str(error), costly=costly)
        except Exception:
            log.exception("A shadow cannot be compared", profile=cycle.profile)
            self._tally(cycle.profile).failed(INTERNAL, costly=False)

    async def _compare(self, cycle: Cycle) -> None:
        profile = cycle.profile
        rows = self._filters.feed.index.find(cycle.nodes)  # that the nodes have now
        bitmap = cycle.verdicts.bitmap if cycle.verdicts is not None else rows.bitmap
        if bitmap != rows.bitmap:
            raise StateChangedError
        live = Outcome(rows=rows.rows, verdicts=cycle.verdicts, scores=cycle.scores)
        if live.scores is not None and len(live.scores.totals) != live.scored.sum():
            raise StateChangedError
        shadow = await self._outcome(cycle, rows)
        if cycle.decision.policy_revision != self._policy.revision:
            raise StateChangedError
        found = Comparison(live=live, shadow=shadow, name_at=self._state.rows.name_at)
        self._tally(profile).compared(cycle, found)

    async def _outcome(self, cycle: Cycle, rows: NodeRows) -> Outcome:
        """Return what the shadow decides, in the state of the live cycle."""
        scores = cycle.scores
        scored_in = scores.generation if scores is not None else self._state.generation
        filtered_in = scored_in if cycle.verdicts is None else cycle.decision.generation
        verdicts = None
        if self._has_plugins("filter", cycle.profile):
            verdicts = await ask(
                self._filters, read_verdicts, cycle, rows, filtered_in, self._seconds
            )
        outcome = Outcome(rows=rows.rows, verdicts=verdicts)
        if scores is None:
            scored_in = filtered_in
        if int(outcome.feasible.sum()) < 2 or not self._has_plugins("score", cycle.profile):
            return outcome
        feasible = rows.subset(rows.positions[outcome.feasible])
        scored = await ask(self._scorers, read_scores, cycle, feasible, scored_in, self._seconds)
        has_opinion = len(scored.totals) > 0
        return Outcome(rows=rows.rows, verdicts=verdicts, scores=scored if has_opinion else None)

    def _has_plugins(self, kind: PluginKind, profile: str) -> bool:
        resolved = self._policy.resolved
        shadows = resolved.policies[kind].shadows if resolved else ()
        return any(shadow.plugins for shadow in shadows if shadow.name == shadow_of(profile))

    def _tally(self, profile: str) -> Tally:
        """Return the tally of a profile's shadow, a new one if the policy has changed."""
        shares, revision = self._policy.shadow_shares, self._policy.revision
        tally = self._tallies.get(profile)
        if tally is None or tally.revision != revision:
            self._tallies = {each: t for each, t in self._tallies.items() if each in shares}
            budget = Budget(shares.get(profile, 0.0), time.monotonic)
            tally = self._tallies[profile] = Tally(profile, revision, budget, self._metrics)
        return tally


def _has_failed(decision: Decision) -> bool:
    """Whether the live profile has no answer, or one without a plugin that failed."""
    if decision.error or decision.score_error:
        return True
    records = (decision.filter, decision.score)
    return any(plugin.failure for record in records if record for plugin in record.plugins)


def shadow_route(shadows: Shadows) -> web.RouteDef:
    """Return the route of `GET /shadow`."""

    async def answer(request: web.Request) -> web.Response:
        reports = shadows.reports()
        if not await may_read(request, ALL_NAMESPACES):
            named = (each.namespace for report in reports for each in report.disagreements)
            visible = await readable(request, named)
            reports = [_restricted(report, visible) for report in reports]
        body = msgspec.json.encode({"profiles": reports}) + b"\n"
        return web.Response(body=body, content_type="application/json")

    return web.get(PATH, answer)


def _restricted(report: ShadowReport, namespaces: frozenset[str]) -> ShadowReport:
    """Return what may be shown to those who see these namespaces; a failure may be of any pod."""
    shown = [each for each in report.disagreements if each.namespace in namespaces]
    return replace(report, disagreements=shown, last_failure="")
