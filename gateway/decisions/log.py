"""What was decided about each pod, and what lists show of it. In memory, for the newest pods."""

import secrets
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gateway.cycle.decision import Decision, NodeScoreRecord, Outcome

UNPACKED = 256
"""Attempts that stay as they are, because the pods may not be bound yet."""

OVERHEAD_BYTES = 600
"""What an attempt takes in addition to the packed decision, about."""


_packed = msgspec.msgpack.Encoder().encode
_unpacked = msgspec.msgpack.Decoder(Decision).decode


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of an attempt.

    Attributes:
        outcome: That.
        node: The node that the pod went to, was to be bound to, or has claimed; "" for none.
        plugins: The plugins that decided: they rejected nodes, failed, wanted the claim, or counted
            most for the best node over the next.
    """

    outcome: Outcome
    node: str
    plugins: tuple[str, ...]

    def at(self, place: str) -> "Facts":
        """Return the facts if the cluster shows the pod on the node *place*, "" for none."""
        if not place or self.outcome != "binding":
            return self
        return Facts(outcome="bound", node=place, plugins=self.plugins)


def facts(decision: Decision) -> Facts:
    """Return the facts of an attempt."""
    record = decision.bind or decision.bind_check or decision.claim
    plugins = dict.fromkeys(map(sys.intern, _plugins(decision)))
    return Facts(
        outcome=_outcome(decision),
        node=record.node if record is not None else "",
        plugins=tuple(plugins),
    )


def differences(one: NodeScoreRecord, other: NodeScoreRecord) -> Mapping[str, float]:
    """Return what each plugin adds to the lead of *one* over *other*; their sum is the lead."""
    weights = sum(score.weight for score in one.plugins)
    others = {score.plugin: score.normalized for score in other.plugins}
    return {
        score.plugin: (score.normalized - others.get(score.plugin, 0.0)) * score.weight / weights
        for score in one.plugins
    }


def _outcome(decision: Decision) -> Outcome:
    if decision.bind is not None:
        return "bind failed" if decision.bind.error else "bound"
    if decision.bind_check is not None and decision.bind_check.error:
        return "bind failed"
    if decision.error:
        return "failed"
    if decision.preempt is not None:
        return "preempting"
    if decision.filter is None:
        return "binding" if decision.score is not None else "deciding"
    return "binding" if decision.filter.feasible else "unschedulable"


def _plugins(decision: Decision) -> Iterator[str]:
    for phase in (decision.filter, decision.preempt, decision.score):
        if phase is not None:
            yield from (each.plugin for each in phase.plugins if each.rejected or each.failure)
    if decision.claim is not None:
        yield from decision.claim.plugins
    if decision.score is not None and len(decision.score.top) > 1:
        parts = differences(*decision.score.top[:2])
        plugin = max(parts, key=lambda name: parts[name], default="")
        if plugin and parts[plugin] > 0:
            yield plugin


def runner_up(decision: Decision, node: str) -> str:
    """Return the best node other than *node*; "" if there is none, or it is not known."""
    top = decision.score.top if decision.score else []
    return next((each.node for each in top if each.node != node), "")


class Attempt(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """An attempt with what it is searched by.

    Nothing in it refers back to it, so the garbage collector may ignore it.

    Attributes:
        number: Its place among all records, from 1 on.
        attempt: Which attempt on the pod it is, from 1 on.
        time: When it began, in seconds since 1970.
        content: The decision; packed if it is not among the newest.
        packed_facts: The facts of a packed decision, once somebody has looked.
    """

    number: int
    attempt: int
    namespace: str
    pod: str
    uid: str
    time: float
    profile: str
    content: Decision | bytes
    packed_facts: Facts | None = None

    @property
    def decision(self) -> Decision:
        """The decision; only a copy of it if it is packed."""
        if isinstance(self.content, bytes):
            return _unpacked(self.content)
        return self.content

    @property
    def facts(self) -> Facts:
        """What became of it."""
        if not isinstance(self.content, bytes):
            return facts(self.content)
        if self.packed_facts is None:  # worked out here, as few look at all of 10,000 pods
            self.packed_facts = facts(self.decision)
        return self.packed_facts

    @property
    def rejected_all(self) -> bool:
        """Whether no node was feasible."""
        filtered = self.decision.filter
        return filtered is not None and not filtered.feasible

    @property
    def packed_bytes(self) -> int:
        """What it takes if it is packed, else 0."""
        return OVERHEAD_BYTES + len(self.content) if isinstance(self.content, bytes) else 0

    def pack(self) -> None:
        """Keep the decision in less room."""
        if not isinstance(self.content, bytes):
            self.content = _packed(self.content)

    def unpack(self) -> Decision:
        """Return the decision, to be written to."""
        self.content, self.packed_facts = self.decision, None
        return self.content


class DecisionLog:
    """The latest attempts of the newest pods; older ones are kept packed, in less room."""

    def __init__(
        self, *, pods: int, attempts: int, memory: int = 1 << 26, unpacked: int = UNPACKED
    ) -> None:
        """Keep *attempts* of each of the *pods* that were decided on last.

        Of these the newest stay *unpacked*; packed ones may take *memory* bytes, the oldest go
        first.
        """
        self._pods = pods
        self._attempts = attempts
        self._memory = memory
        self._unpacked = unpacked
        self._log: OrderedDict[tuple[str, str], list[Attempt]] = OrderedDict()
        self._by_number: dict[int, Attempt] = {}
        self._newest: deque[Attempt] = deque()
        self._count = 0
        self._bytes = 0
        self._prefix = secrets.token_hex(4)

    def __len__(self) -> int:
        return len(self._log)

    @property
    def packed_bytes(self) -> int:
        """What packed attempts take."""
        return self._bytes

    def add(self, decision: Decision, *, again: bool = False) -> Attempt | None:
        """Begin a new attempt, or another record of the attempt before (*again*); number it.

        Returns:
            The attempt before on this very pod, if it is kept.
        """
        self._count += 1
        key = (decision.namespace, decision.pod)
        of_pod = self._log.setdefault(key, [])
        decision.id, decision.attempt = self._id(self._count), 1
        previous = of_pod[-1] if of_pod and of_pod[-1].uid == decision.uid else None
        if previous is not None:
            decision.previous = self._id(previous.number)
            decision.attempt = previous.attempt + (not again)
        attempt = Attempt(
            number=self._count,
            attempt=decision.attempt,
            namespace=decision.namespace,
            pod=decision.pod,
            uid=decision.uid,
            time=decision.time.timestamp(),
            profile=decision.profile,
            content=decision,
        )
        self._by_number[attempt.number] = attempt
        of_pod.append(attempt)
        if len(of_pod) > self._attempts:
            self._drop(of_pod[0])
        self._log.move_to_end(key)
        if len(self._log) > self._pods:
            for oldest in list(next(iter(self._log.values()))):
                self._drop(oldest)
        self._newest.append(attempt)
        if len(self._newest) > self._unpacked:
            self._pack_oldest()
        return previous

    def latest(self, namespace: str, pod: str, uid: str) -> Decision | None:
        """Return the latest attempt of a pod, to be written to, if it is the pod with this uid."""
        of_pod = self._log.get((namespace, pod))
        if not of_pod or of_pod[-1].uid != uid:
            return None
        latest = of_pod[-1]
        if isinstance(latest.content, Decision):
            return latest.content
        self._bytes -= latest.packed_bytes
        decision = latest.unpack()
        self._newest.append(latest)
        self._pack_oldest()
        return decision

    def attempts(self, namespace: str, pod: str) -> list[Decision]:
        """Return the attempts of a pod, newest first."""
        return [each.decision for each in self.of_pod(namespace, pod)]

    def of_pod(self, namespace: str, pod: str) -> Sequence[Attempt]:
        """Return the attempts of a pod as they are kept, newest first."""
        return self._log.get((namespace, pod), [])[::-1]

    def all(self) -> list[Attempt]:
        """Return all attempts, newest first."""
        return list(reversed(self._by_number.values()))

    def is_latest(self, attempt: Attempt) -> bool:
        """Whether no newer attempt of the same pod is kept."""
        of_pod = self._log.get((attempt.namespace, attempt.pod))
        return of_pod is not None and of_pod[-1] is attempt

    def number_of(self, decision: str) -> int | None:
        """Return the number of an id; None if it is none, or of another gateway's log.

        No other gateway, nor this one once restarted, has the same ids.
        """
        digits = decision.removeprefix(f"{self._prefix}-")
        if digits == decision or not (digits.isascii() and digits.isdecimal()):
            return None
        number = int(digits[: len(str(self._count)) + 1])
        return number if 0 < number <= self._count and decision == self._id(number) else None

    def _id(self, number: int) -> str:
        """Return the id of a record; no other log has the prefix."""
        return f"{self._prefix}-{number}"

    def _pack_oldest(self) -> None:
        if len(self._newest) > self._unpacked:
            attempt = self._newest.popleft()
            if attempt.number in self._by_number:
                attempt.pack()
                self._bytes += attempt.packed_bytes
        while self._bytes > self._memory:
            self._drop(next(each for each in self._by_number.values() if each.packed_bytes))

    def _drop(self, attempt: Attempt) -> None:
        del self._by_number[attempt.number]
        self._bytes -= attempt.packed_bytes
        key = (attempt.namespace, attempt.pod)
        of_pod = self._log[key]
        of_pod.remove(attempt)
        if not of_pod:
            del self._log[key]
