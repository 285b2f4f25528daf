"""Which pods are equal, and so whether others may be judged like one of them.

Two pods are if their signatures are: the fields at which the plugins of their profile look.
"""

from collections import OrderedDict

from gateway.cluster.state import ClusterState
from gateway.cycle.request import Subject
from moorage.models import Pod

SEEN = 1000
"""Signatures of pods that came once so far."""


class EqualPods:
    """Knows pods again by their signature."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._seen: OrderedDict[int, str] = OrderedDict()

    def is_like_others(self, subject: Subject) -> bool:
        """Whether what is said of the subject may be said of equal pods too.

        Not if the nodes are others than those of the state, for a single plugin, or for a pod that
        has a place: replicas leave it out where it is, as they do with no other.
        """
        return (
            subject.given is None
            and not subject.plugin
            and not subject.excluded_pods
            and not self._state.place_of(subject.pod.uid)
        )

    def recurs(self, pod: Pod, signature: bytes) -> bool:
        """Whether an equal pod has come before; most pods without one need not be remembered."""
        key = hash(signature)
        first = self._seen.setdefault(key, pod.uid)
        self._seen.move_to_end(key)
        if len(self._seen) > SEEN:
            self._seen.popitem(last=False)
        return first != pod.uid
