"""What was decided about each pod, and why. In memory, for the newest pods."""

from collections import OrderedDict, deque

import msgspec

from gateway.decisions.cycle import SchedulingCycle
from gateway.decisions.records import Decision, NodeScoreRecord
from gateway.decisions.verdicts import NodeVerdicts
from moorage import DecisionSummary, ScoredNode

UNPACKED = 256
"""Attempts that stay as they are, because the pods may not be bound yet."""


class DecisionLog:
    """The latest attempts of the newest pods; older ones are kept packed, in less room."""

    def __init__(
        self, *, pods: int, attempts: int, verdicts: int = 0, unpacked: int = UNPACKED
    ) -> None:
        """Keep *attempts* of each of the *pods* that were decided on last.

        Args:
            pods: How many pods.
            attempts: How many attempts of each.
            verdicts: Newest attempts of which the verdict on each node is kept.
            unpacked: Newest attempts that stay as they are.
        """
        self._pods = pods
        self._attempts = attempts
        self._unpacked = max(unpacked, verdicts)
        self._verdicts: deque[tuple[Decision, NodeVerdicts]] = deque(maxlen=verdicts)
        self._log: OrderedDict[tuple[str, str], list[Decision | bytes]] = OrderedDict()
        self._newest: deque[Decision] = deque()

    def __len__(self) -> int:
        return len(self._log)

    def add(self, decision: Decision) -> None:
        """Begin a new attempt."""
        key = (decision.namespace, decision.pod)
        attempts = self._log.setdefault(key, [])
        attempts.append(decision)
        del attempts[: -self._attempts]
        self._log.move_to_end(key)
        if len(self._log) > self._pods:
            self._log.popitem(last=False)
        self._newest.append(decision)
        if len(self._newest) > self._unpacked:
            self._pack(self._newest.popleft())

    def latest(self, namespace: str, pod: str, uid: str) -> Decision | None:
        """Return the latest attempt of a pod, to be written to, if it is the pod with this uid."""
        attempts = self._log.get((namespace, pod))
        if not attempts:
            return None
        latest = attempts[-1] = _unpack(attempts[-1])
        return latest if latest.uid == uid else None

    def attempts(self, namespace: str, pod: str) -> list[Decision]:
        """Return the attempts of a pod, newest first."""
        return [_unpack(each) for each in self._log.get((namespace, pod), ())][::-1]

    def ended(self, cycle: SchedulingCycle) -> None:
        """Keep the verdict on each node for as long as the attempt is among the newest."""
        if cycle.verdicts is not None:
            self._verdicts.append((cycle.decision, cycle.verdicts))

    def bound(self, decision: Decision) -> None:
        """Do nothing: the outcome is in the decision."""

    def verdicts(self, decision: Decision) -> NodeVerdicts | None:
        """Return the verdicts of an attempt, if they are still kept."""
        return next((kept for made, kept in self._verdicts if made is decision), None)

    def _pack(self, decision: Decision) -> None:
        attempts = self._log.get((decision.namespace, decision.pod), [])
        for index, attempt in enumerate(attempts):
            if attempt is decision:
                attempts[index] = msgspec.json.encode(decision)


def _unpack(attempt: Decision | bytes) -> Decision:
    return msgspec.json.decode(attempt, type=Decision) if isinstance(attempt, bytes) else attempt


def summary(decision: Decision, node: str) -> DecisionSummary:
    """Say in short why the pod goes to *node*, for the plugins of the binder."""
    top = decision.score.top if decision.score else []
    winner = next((each for each in top if each.node == node), None)
    second = next((each for each in top if each.node != node), None)
    return DecisionSummary(
        winner=_scored(winner) if winner else ScoredNode(node=node),
        runner_up=_scored(second) if second else None,
        nodes=decision.filter.nodes if decision.filter else 0,
        feasible=decision.filter.feasible if decision.filter else 0,
        policy_revision=decision.policy_revision,
        generation=decision.generation,
    )


def _scored(node: NodeScoreRecord) -> ScoredNode:
    counted = sorted(node.plugins, key=lambda score: -score.normalized * score.weight)
    return ScoredNode(
        node=node.node,
        score=node.total,
        plugins={score.plugin: score.normalized for score in counted},
    )
