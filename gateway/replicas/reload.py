"""Follows the policy file, and activates a changed policy between two cycles.

Runs beside the cycles, started by `gateway.app`. If the new content is
wrong, or a replica cannot run it, the active policy stays.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.cluster.kinds import AdditionalKinds
from gateway.policy.policy import PolicyHolder, policy_for, reads_of
from gateway.replicas.rollout import PolicyRefusedError, Rollout
from moorage.errors import ConfigurationError
from moorage.models import Pod
from moorage_host.policy import Document, Kind, ResolvedPolicy, examine, parse, read

Outcome = Literal["ok", "refused"]

REFUSED = "the file is refused and the policy before it stays active"

RETRY_SECONDS = 10.0
"""After which a content that was refused is tried again: replicas and rights change too."""

SYNC_SECONDS = 10.0
"""How long the objects that a new policy's plugins read may take to come."""

log = structlog.get_logger()


class ReloadMetrics:
    """The metrics of changes of the policy file."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reloads = Counter(
            "moorage_policy_reloads",
            "Changes of the policy file: ok (active) or refused.",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("ok", "refused"):
            self._reloads.labels(outcome)
        self._refused = Gauge(
            "moorage_policy_file_refused",
            "1 while the policy file differs from the active policy.",
            registry=registry,
        )

    def reloaded(self, outcome: Outcome) -> None:
        """Count a change."""
        self._reloads.labels(outcome).inc()
        self._refused.set(outcome == "refused")


class PolicyReloader:
    """Compares the file's content with what was read last.

    Attributes:
        problem: Why the file is not active; empty if it is.
    """

    def __init__(
        self,
        path: Path,
        text: str,
        *,
        policy: PolicyHolder,
        objects: AdditionalKinds,
        rollouts: Sequence[Rollout],
        between_cycles: Callable[[], AbstractAsyncContextManager[None]],
        pods: Mapping[str, Pod],
        report: Callable[[str, str], None],
        metrics: ReloadMetrics,
    ) -> None:
        """Follow the file at *path*, whose *text* is in *policy* already.

        Args:
            path: The policy file.
            text: Its content at the start.
            policy: Holds the active policy.
            objects: Follows what plugins read.
            rollouts: Bring a policy to the replicas.
            between_cycles: No cycle runs inside this context.
            pods: The pods that have not ended, by UID.
            report: Reports a problem to operators: its reason in CamelCase, and a sentence.
            metrics: Counts.
        """
        self.problem = ""
        self._lost: dict[str, str] = {}
        self._pods = pods
        self._report = report
        self._path = path
        self._seen = self._tried = text
        self._policy = policy
        self._objects = objects
        self._rollouts = rollouts
        self._between_cycles = between_cycles
        self._metrics = metrics
        self._catalogue_version, self._retry_at = 0, 0.0

    async def run(self, interval: float) -> None:
        """Look at the file every *interval* seconds, until cancelled."""
        while True:
            await asyncio.sleep(interval)
            await self._look()

    @property
    def file_hash(self) -> str:
        """The SHA-256 of the content that was read last and is active or refused, in hex."""
        return hashlib.sha256(self._tried.encode()).hexdigest()

    def note(self) -> str | None:
        """Return what to note about the file: it is not active, or took profiles from pods."""
        notes = list(self._lost.values())
        if self.problem:
            notes.insert(0, f"{REFUSED}: {self.problem}")
        return "; ".join(notes) or None

    async def _look(self) -> None:
        unreadable: ConfigurationError | None = None
        try:
            text = await asyncio.to_thread(read, self._path)
        except ConfigurationError as error:
            text, unreadable = "", error
        before, self._seen = self._seen, text
        if text != before:
            return  # it may be partly written; it counts once it is the same twice
        if text == self._tried and not self._is_worth_another_try():
            return
        self._tried, self._catalogue_version = text, self._policy.catalogue_version
        try:
            if unreadable is not None:
                raise unreadable
            await self._reload(text)
        except (ConfigurationError, PolicyRefusedError) as error:
            self._refuse(str(error))
        else:
            self.problem = ""
            if self._policy.resolved is None:
                return  # what it means is not known yet
            self._metrics.reloaded("ok")
            log.info("The policy file is active", revision=self._policy.revision)

    def _is_worth_another_try(self) -> bool:
        if not self.problem:
            return False
        is_time = asyncio.get_running_loop().time() >= self._retry_at
        return is_time or self._policy.catalogue_version != self._catalogue_version

    def _refuse(self, problem: str) -> None:
        self._retry_at = asyncio.get_running_loop().time() + RETRY_SECONDS
        if problem == self.problem:
            return
        self.problem = problem
        self._metrics.reloaded("refused")
        self._report("PolicyRefused", f"{REFUSED}: {problem}")
        log.warning(
            "The policy file is refused and the old policy stays active",
            error=problem,
            revision=self._policy.revision,
        )

    async def _reload(self, text: str) -> None:
        # In a thread: a long document takes longer than a cycle may wait.
        _, resolved = self._policy.active()
        if resolved is None:
            self._policy.replace(await asyncio.to_thread(parse, text, str(self._path)))
            return
        document = await asyncio.to_thread(examine, text, str(self._path))
        new = await asyncio.to_thread(self._policy.resolve, document)
        for warning in new.warnings:
            log.warning("A part of the policy has no effect", warning=warning)
        if new.revision == resolved.revision:
            self._policy.activate(document, new)
            return
        rollouts = [each for each in self._rollouts if _differ(resolved, new, each.kind)]
        async with self._ready(new, rollouts):
            await self._swap(document, new, rollouts)

    @asynccontextmanager
    async def _ready(self, new: ResolvedPolicy, rollouts: Sequence[Rollout]) -> AsyncIterator[None]:
        """Keep a policy ready in all replicas; in the end they have only what they need."""
        try:
            await self._synced(new, rollouts)
            async with AsyncExitStack() as stack:
                for rollout in rollouts:
                    kind = rollout.kind
                    ready = rollout.ready(policy_for(new, kind, rollout.share), reads_of(new, kind))
                    await stack.enter_async_context(ready)
                yield
        finally:
            _, resolved = self._policy.active()
            assert resolved is not None  # noqa: S101 - there was one before
            for rollout in rollouts:
                await rollout.settle(reads_of(resolved, rollout.kind))
            self._objects.want(self, {})

    async def _synced(self, new: ResolvedPolicy, rollouts: Sequence[Rollout]) -> None:
        readers = reads_of(new, *(rollout.kind for rollout in rollouts))
        self._objects.want(self, readers)
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await self._objects.synced(readers)
        except TimeoutError as error:
            missing = self._objects.missing(readers)
            raise PolicyRefusedError(f"its plugins read what is not there: {missing}") from error

    async def _swap(
        self, document: Document, new: ResolvedPolicy, rollouts: Sequence[Rollout]
    ) -> None:
        former, resolved = self._policy.active()
        assert resolved is not None  # noqa: S101 - there was one before
        async with self._between_cycles():
            self._policy.activate(document, new)
            if problem := await _switch(new, rollouts):
                self._policy.activate(former, resolved)
                await _switch(resolved, rollouts)
                raise PolicyRefusedError(problem)
        self._compare(resolved, new)

    def _compare(self, former: ResolvedPolicy, new: ResolvedPolicy) -> None:
        """Say so if pods have lost the plugins of their profile: the file may have been cut."""
        now = _with_plugins(new)
        self._lost = {name: note for name, note in self._lost.items() if name not in now}
        gone = _with_plugins(former) - now
        waits: dict[str, list[bool]] = {}
        for pod in self._pods.values() if gone else ():
            waits.setdefault(pod.spec.scheduler_name, []).append(not pod.spec.node_name)
        for name in sorted(gone & waits.keys()):
            pods, waiting = len(waits[name]), sum(waits[name])
            self._lost[name] = note = (
                f"profile {name} has gone from the file, or has no plugins any more; {pods} pods "
                f"name it as their schedulerName, {waiting} of them wait, and they are placed "
                "without Moorage"
            )
            self._report("ProfileLost", note)
            log.warning("A profile with pods is lost", profile=name, pods=pods, waiting=waiting)


def _with_plugins(resolved: ResolvedPolicy) -> set[str]:
    """Return the profiles that have plugins."""
    policies = resolved.policies.values()
    return {each.name for policy in policies for each in policy.profiles if each.plugins}


async def _switch(resolved: ResolvedPolicy, rollouts: Sequence[Rollout]) -> str:
    switches = [each.switch(policy_for(resolved, each.kind, each.share)) for each in rollouts]
    return "; ".join(problem for problem in await asyncio.gather(*switches) if problem)


def _differ(some: ResolvedPolicy, other: ResolvedPolicy, kind: Kind) -> bool:
    return some.policies[kind].revision != other.policies[kind].revision
