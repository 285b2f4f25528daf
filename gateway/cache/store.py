"""What is known of the newest pods, by their signature."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from gateway.cache.equal_pods import EqualPods
from gateway.cache.signature import Signature
from gateway.cycle.request import Subject
from gateway.policy.policy import PolicyHolder
from gateway.replicas.pool import ReplicaPool

Known = TypeVar("Known")


class Store(Generic[Known]):
    """Keeps what is known of pods that come time and again, as long as nothing else changes.

    Nothing is known any more once the policy, or the replicas that take part, are others.
    """

    def __init__(
        self, policy: PolicyHolder, pool: ReplicaPool, equal_pods: EqualPods, limit: int
    ) -> None:
        """Keep what *pool* said under *policy* of pods with at most *limit* signatures."""
        self._policy = policy
        self._pool = pool
        self._equal = equal_pods
        self._limit = limit
        self._moment: Hashable = None
        self._newest: OrderedDict[bytes, Known] = OrderedDict()

    def known(
        self, subject: Subject, signature: Signature, make: Callable[[], Known]
    ) -> Known | None:
        """Return what is known of pods like the subject's, begun by *make*; None for others."""
        if not self._limit or not self._equal.is_like_others(subject):
            return None
        key = signature.of(subject.pod)
        if not self._equal.recurs(subject.pod, key):
            return None
        moment = self._policy.revision, self._pool.turnover
        if moment != self._moment:
            self._moment = moment
            self._newest.clear()
        known = self._newest.get(key)
        if known is None:
            known = self._newest[key] = make()
            if len(self._newest) > self._limit:
                self._newest.popitem(last=False)
        self._newest.move_to_end(key)
        return known
