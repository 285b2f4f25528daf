"""Remembers pods that fit nowhere, so that no replica is asked the same about equal pods.

A Deployment with a thousand replicas too many asks a thousand times, and again whenever something
happens in the cluster. Two pods are equal if their signatures are, provided that no filter plugin
of their profile depends on more than `Scope.CLUSTER`. Called by `gateway.cycle.runner`.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass

from gateway.cache.equal_pods import EqualPods
from gateway.cluster.state import ClusterState
from gateway.cycle.filtering import Filtered, FilterHalf
from gateway.cycle.merging import FilteredShard, add_verdicts, verdicts_on
from gateway.cycle.request import Subject
from gateway.decisions.from_protobuf import note_memory
from gateway.metrics import CycleMetrics
from gateway.policy.policy import PolicyHolder
from moorage.models import Pod

TOLD = 4
"""Answers that are kept whole: with thousands of nodes, each is hundreds of kilobytes."""


@dataclass(slots=True, eq=False)
class _Rejection:
    """What filters said of pods with one signature: no to all these nodes."""

    verdicts: FilteredShard
    pod: str


class Rejections:
    """The newest pods that were rejected on all nodes, at the present moment of the state.

    Attributes:
        profiles: Those that may have such pods; all others need not ask.
    """

    def __init__(
        self,
        state: ClusterState,
        policy: PolicyHolder,
        filter_half: FilterHalf,
        equal_pods: EqualPods,
        metrics: CycleMetrics,
        *,
        limit: int,
    ) -> None:
        """Remember pods with at most *limit* different signatures."""
        self.profiles: set[str] = set()
        self._state = state
        self._policy = policy
        self._filter_half = filter_half
        self._equal = equal_pods
        self._metrics = metrics
        self._limit = limit
        self._moment: tuple[int, str, int] | None = None
        self._newest: OrderedDict[bytes, _Rejection] = OrderedDict()
        self._told: deque[tuple[_Rejection, Filtered]] = deque(maxlen=TOLD)

    def recall(self, subject: Subject) -> Filtered | None:
        """Return what a filter replica would say again; None if it has to be asked."""
        if self._now() != self._moment:
            self._forget()
            return None
        if not self._may_be_known(subject):
            return None
        signature = self._signature(subject.pod)
        rejection = self._newest.get(signature)
        filtered = self._tell(rejection, subject) if rejection else None
        if filtered is not None:
            self._newest.move_to_end(signature)
            self._metrics.remembered()
        return filtered

    def remember(self, subject: Subject, filtered: Filtered) -> None:
        """Keep what replicas just said of the subject's nodes, if it was no to all of them."""
        record, now = filtered.record, self._now()
        if filtered.outcome.feasible or any(filtered is told for _, told in self._told):
            return
        if filtered.generation != now[0] or not self._may_be_known(subject):
            return
        if any(plugin.failure for plugin in record.plugins):
            return  # next time it may work
        if now != self._moment:
            self._forget()
            self._moment = now
        self._add(self._signature(subject.pod), subject.pod, filtered.verdicts)

    def _now(self) -> tuple[int, str, int]:
        """Return what changes whenever replicas might say something else."""
        turnover = self._filter_half.pool.turnover
        return self._state.generation, self._policy.revision, turnover

    def _may_be_known(self, subject: Subject) -> bool:
        """Whether other pods may be judged alike."""
        profile = subject.pod.spec.scheduler_name
        cacheable = profile in self._policy.dependencies.signing
        return self._limit > 0 and cacheable and self._equal.is_like_others(subject)

    def _signature(self, pod: Pod) -> bytes:
        return self._policy.dependencies.filter_signatures[pod.spec.scheduler_name].of(pod)

    def _tell(self, rejection: _Rejection, subject: Subject) -> Filtered | None:
        found = self._filter_half.lookup.find(subject.names, None)
        for known, told in self._told:
            same = known is rejection and told.found.bitmap == found.bitmap
            if same and not (found.unknown or told.found.unknown):
                return told
        verdicts = verdicts_on(found, rejection.verdicts)
        if verdicts is None:
            return None
        filtered = self._filter_half.tell(subject, verdicts, self._state.generation)
        note_memory(filtered.record, rejection.pod, filtered.found.count, None)
        self._told.appendleft((rejection, filtered))
        return filtered

    def _add(self, signature: bytes, pod: Pod, verdicts: FilteredShard) -> None:
        known = self._newest.pop(signature, None)
        if known is not None:  # about other nodes: kube-scheduler may look at a sample each time
            verdicts = add_verdicts(known.verdicts, verdicts)
        self._newest[signature] = _Rejection(verdicts, f"{pod.namespace}/{pod.name}")
        self.profiles.add(pod.spec.scheduler_name)
        if len(self._newest) > self._limit:
            self._newest.popitem(last=False)

    def _forget(self) -> None:
        self._moment = None
        self.profiles.clear()
        self._newest.clear()
        self._told.clear()
