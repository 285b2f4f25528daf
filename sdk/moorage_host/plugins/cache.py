"""The cache of a replica: what plugins answered holds for equal pods, until a change.

Equal pods are those that read alike in the fields that the plugins of their profile read
(`Plugin.pod_fields`). What a plugin answers depends on the node, on all manifests, or on the
whole cluster (`Plugin.depends_on`), and the snapshot knows the last change of each. So of an equal
pod, plugins are asked about the stale rows only. Plugin code and arguments are fixed within a
policy; with another policy, or another snapshot, everything is dropped.

It has its price: to look for an equal pod, for stale rows, and to put the answer together takes as
long as three plugins in numpy do for 5,000 nodes. So it takes part only where plugins take longer,
which is measured: see `WORTH_SECONDS`.

Nothing is cached of plugins that depend on anything else, or that may want a claim; of cycles that
run a single plugin, bring nodes, leave pods out, or are about a pod that has a place
(`Replica.run`); nor of answers with a failure, with values for the bind, or with narrowed nodes.
"""

import random
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.execution import PluginRun, Profile, Supervisor
from moorage.models import Pod, encode
from moorage.plugin.pod_fields import FIELDS, reader, union
from moorage.plugin.scope import Scope
from moorage.snapshot import Nodes, Snapshot
from moorage_host.plugins.host import Policy

WORTH_SECONDS = 0.0005
"""What the plugins of a phase must take for the nodes of a cycle for the cache to take part."""

MEASURE_AFTER = 100
"""Answers from the cache after which plugins are asked about all nodes, to measure them again."""

SEEN = 1000
"""Pods that are kept in mind to recognise the second of equal ones; most have no equal."""

NEVER = -1

Rows = npt.NDArray[np.intp]


class CacheLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is cached.

    Attributes:
        pods: Pods with different signatures; 0 caches nothing.
        bytes: What the arrays may take together.
        verify_share: The share of the answers that plugins are asked about all the same.
        worth_seconds: See `WORTH_SECONDS`.
    """

    pods: int = 64
    bytes: int = 32 << 20
    verify_share: float = 0.0
    worth_seconds: float = WORTH_SECONDS


class Cacheable(Protocol):
    """The outcome of an engine."""

    @property
    def plugins(self) -> Sequence[PluginRun]:
        """What each plugin did."""


OnDifference = Callable[[str, str, str], None]
"""Called with the profile, the pod and what differs."""

Run = TypeVar("Run", bound=Cacheable)


Answer = TypeVar("Answer")

Engine = Callable[[Profile, Pod, Nodes, Supervisor], Awaitable[Answer]]
"""Runs a profile's plugins for one pod; pure: no clock, no transport."""


class Signature:
    """Reads what makes pods equal, compiled once for a profile."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Read the fields at *paths*."""
        self._plain: list[Callable[[Pod], object]] = []
        # The parts of the items of lists, by list: containers, most of all.
        lists: dict[str, list[str]] = {}
        for path in paths:
            outer, mark, inner = ".".join(FIELDS[path]).partition(".*.")
            is_flat = mark and "*" not in inner and outer.count(".") == 1
            if is_flat:
                lists.setdefault(outer, []).append(inner)
            else:
                self._plain.append(reader(path))
        self._lists = [(attrgetter(outer), attrgetter(*inner)) for outer, inner in lists.items()]

    def of(self, pod: Pod) -> bytes:
        """Return the signature of a pod; equal pods have the same."""
        parts: list[object] = [read(pod) for read in self._plain]
        for items, inner in self._lists:
            parts.append(list(map(inner, items(pod))))
        return encode(parts)


class Entry:
    """What plugins answered about equal pods: some numbers for each row.

    Attributes:
        source: The pod that they were asked about last, as NAMESPACE/NAME.
        values: The numbers, a line for each plugin, or one for all.
        labels: What the numbers mean: reasons, or names of plugins.
        reports: The plugins that ran, and whether they skipped.
    """

    def __init__(self, values: npt.NDArray[Any], labels: Any) -> None:
        self.source = ""
        self.values = values
        self.labels = labels
        self.reports: Sequence[tuple[str, bool]] = ()
        self._valid_at = np.full(values.shape[1], NEVER, np.int64)
        self._objects_at = 0

    @property
    def capacity(self) -> int:
        """The rows that it has."""
        return len(self._valid_at)

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return int(self.values.nbytes + self._valid_at.nbytes)

    def stale(self, rows: Rows, snapshot: Snapshot, scope: Scope) -> npt.NDArray[np.bool_]:
        """Return which of the rows plugins have to be asked about."""
        valid_at, since = self._valid_at[rows], 0
        if scope >= Scope.MANIFESTS:
            since = snapshot.manifests_changed if scope < Scope.CLUSTER else snapshot.changes
            if self._objects_at != snapshot.objects.changes:
                return np.ones(len(rows), np.bool_)
        stale: npt.NDArray[np.bool_] = snapshot.touched[rows] > valid_at
        stale |= valid_at < since
        return stale

    def learn(self, rows: Rows, values: npt.NDArray[Any], snapshot: Snapshot) -> None:
        """Take over what was answered just now about some rows."""
        if self._objects_at != snapshot.objects.changes:
            self._objects_at = snapshot.objects.changes
            self._valid_at.fill(NEVER)
        self._valid_at[rows] = snapshot.changes
        if values.size:
            self.values[:, rows] = values


class Found(msgspec.Struct, frozen=True):
    """An entry that is valid for all nodes that a question is about, and how it came to be.

    Attributes:
        entry: The entry.
        cached: About how many of the nodes plugins were not asked.
        runs: What plugins did where they were asked.
        source: The pod from which the others come; empty if there are none.
    """

    entry: Entry
    cached: int
    runs: Sequence[PluginRun]
    source: str = ""

    def reports(self) -> list[PluginRun]:
        """Return what plugins did, those included that had nothing to do any more."""
        ran = {run.plugin: run for run in self.runs}
        return [
            ran.get(plugin) or PluginRun(plugin=plugin, skipped=skipped)
            for plugin, skipped in self.entry.reports
        ]


class _Rules:
    """How the answers of a profile are cached."""

    def __init__(self, profile: Profile) -> None:
        kinds = [type(enabled.plugin) for enabled in profile.plugins]
        self.scope = max((kind.depends_on for kind in kinds), default=Scope.ANYTHING)
        if any(enabled.may_claim for enabled in profile.plugins):
            self.scope = Scope.ANYTHING  # whether a pod claims its node, only the plugin knows
        self.signature = Signature(union(kind.pod_fields for kind in kinds))
        # The less of the last two cycles in which plugins were asked about all nodes, for one node:
        # the first one after a start is slow.
        self.seconds_per_node = 0.0
        self.latest = 0.0
        self.answered = 0


class Question(msgspec.Struct, Generic[Run], frozen=True):
    """A cycle, as far as plugins see it.

    Attributes:
        profile: The plugins.
        pod: The pod.
        nodes: The nodes of the cycle.
        shard: Those of them that the answer is about: all, unless other replicas answer as well.
        engine: Answers without a cache.
        supervisor: Runs the plugins.
    """

    profile: Profile
    pod: Pod
    nodes: Nodes
    shard: Nodes
    engine: Engine[Run]
    supervisor: Supervisor


class Cache(ABC, Generic[Run]):
    """Caches what one kind of engine answers for equal pods, for the policy and state of a session.

    Attributes:
        on_difference: Called with the profile, the pod and what differs, if the plugins do not
            confirm an answer.
    """

    def __init__(self, limits: CacheLimits, on_difference: OnDifference) -> None:
        """Cache as much as *limits* allow."""
        self.on_difference = on_difference
        self._limits = limits
        self._policy: Policy | None = None
        self._snapshot = Snapshot()
        self._rules: dict[str, _Rules] = {}
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._bytes = 0
        self._seen: OrderedDict[int, None] = OrderedDict()

    @abstractmethod
    async def ask(self, question: Question[Run], asked: Nodes) -> Run:
        """Ask plugins about some nodes of the shard, for their values."""

    @abstractmethod
    def new_entry(self, run: Run, capacity: int) -> Entry:
        """Return an empty entry for answers like this."""

    @abstractmethod
    def values(self, entry: Entry, run: Run) -> npt.NDArray[Any] | None:
        """Return the values of an answer as the entry has them; None if they do not go with it."""

    @abstractmethod
    async def answer(self, question: Question[Run], found: Found) -> Run:
        """Put the answer on all nodes of the shard together."""

    @abstractmethod
    def difference(self, cached: Run, fresh: Run) -> str:
        """Return in what two answers differ; empty if they do not."""

    async def run(self, question: Question[Run], policy: Policy, snapshot: Snapshot) -> Run:
        """Return the answer about the nodes of the shard, by a policy and in a state.

        Raises what the engine raises.
        """
        if policy is not self._policy or snapshot is not self._snapshot:
            self._forget(policy, snapshot)
        profile, count = question.profile, question.shard.rows.size
        rules = self._rules.get(profile.name)
        if rules is None:
            rules = self._rules[profile.name] = _Rules(profile)
        key = b""
        if (
            count
            and rules.scope < Scope.ANYTHING
            and rules.seconds_per_node * count >= self._limits.worth_seconds
        ):
            key = b"%b\0%b" % (profile.name.encode(), rules.signature.of(question.pod))
            run = None
            if rules.answered < MEASURE_AFTER:
                run = await self._from_entry(question, key, rules)
            if run is not None:
                rules.answered += 1
                return run
        run = await question.engine(profile, question.pod, question.nodes, question.supervisor)
        if count and rules.scope < Scope.ANYTHING:
            seconds = 0.0
            for each in run.plugins:
                seconds += each.node_seconds
            rules.seconds_per_node = min(rules.latest, seconds / count)
            rules.latest, rules.answered = seconds / count, 0
        if key and self._is_second(key):
            entry = self.new_entry(run, snapshot.capacity)
            if self._learn(entry, run, question.shard.rows, question.pod):
                self._keep(key, entry)
        return run

    async def _from_entry(self, question: Question[Run], key: bytes, rules: _Rules) -> Run | None:
        """Return the answer, if some of it is cached and what is not goes with it."""
        entry, snapshot = self._entries.pop(key, None), self._snapshot
        if entry is None:
            return None
        self._bytes -= entry.nbytes
        if entry.capacity < snapshot.capacity:
            return None
        shard, source, runs = question.shard, entry.source, list[PluginRun]()
        stale = entry.stale(shard.rows, snapshot, rules.scope)
        count = int(np.count_nonzero(stale))
        if count == shard.rows.size:
            return None
        if count:
            # If this raises, the entry is gone; the next equal pod begins another.
            asked = shard.where(stale)
            part = await self.ask(question, asked)
            question.supervisor.runs, runs = [], list(part.plugins)
            if not self._learn(entry, part, asked.rows, question.pod):
                return None
        run = await self.answer(question, Found(entry, shard.rows.size - count, runs, source))
        self._keep(key, entry)
        if random.random() < self._limits.verify_share:
            return await self._verified(question, run, key)
        return run

    async def _verified(self, question: Question[Run], run: Run, key: bytes) -> Run:
        """Ask plugins about everything; where they differ, their answer counts.

        A plugin that declares less than it depends on misplaces pods; this finds it.
        """
        question.supervisor.runs = []
        fresh = await question.engine(
            question.profile, question.pod, question.nodes, question.supervisor
        )
        has_failed = any(each.failure for each in fresh.plugins)
        difference = "" if has_failed else self.difference(run, fresh)
        if not difference:
            question.supervisor.runs = list(run.plugins)
            return run
        entry = self._entries.pop(key, None)
        self._bytes -= 0 if entry is None else entry.nbytes
        self.on_difference(question.profile.name, name_of(question.pod), difference)
        return fresh

    def _learn(self, entry: Entry, run: Run, rows: Rows, pod: Pod) -> bool:
        """Take over an answer, if it may be cached."""
        if any(each.failure or each.kept or each.narrowed for each in run.plugins):
            return False
        values = self.values(entry, run)
        if values is None:
            return False
        entry.learn(rows, values, self._snapshot)
        # A part of the nodes lacks the plugins that found no nodes left.
        reports = [(each.plugin, each.skipped) for each in run.plugins]
        entry.reports = max(entry.reports, reports, key=len)
        entry.source = name_of(pod)
        return True

    def _keep(self, key: bytes, entry: Entry) -> None:
        """Keep an entry; those that were not used for longest go."""
        before = self._entries.pop(key, None)
        self._bytes += entry.nbytes - (0 if before is None else before.nbytes)
        self._entries[key] = entry
        while len(self._entries) > self._limits.pods or self._bytes > self._limits.bytes:
            self._bytes -= self._entries.popitem(last=False)[1].nbytes

    def _is_second(self, key: bytes) -> bool:
        hashed = hash(key)
        seen = hashed in self._seen
        self._seen[hashed] = None
        self._seen.move_to_end(hashed)
        if len(self._seen) > SEEN:
            self._seen.popitem(last=False)
        return seen

    def _forget(self, policy: Policy, snapshot: Snapshot) -> None:
        """Begin again, with another policy or in another state."""
        self._policy, self._snapshot = policy, snapshot
        self._rules.clear()
        self._entries.clear()
        self._bytes = 0


def name_of(pod: Pod) -> str:
    """Return NAMESPACE/NAME."""
    return f"{pod.namespace}/{pod.name}"
