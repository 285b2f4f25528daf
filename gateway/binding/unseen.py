"""Pods that kube-scheduler has brought and the watch has not shown yet.

A pod's bind may come before the watch shows the pod. Its place has to count all the same.
"""

from collections import OrderedDict

from gateway.cluster.state import ClusterState
from moorage.models import Pod


class UnseenPods:
    """The newest pods of filter calls that the state did not have."""

    def __init__(self, state: ClusterState, limit: int) -> None:
        """Keep pods until *state* has them, the newest *limit*."""
        self._state = state
        self._limit = limit
        self._by_uid: OrderedDict[str, Pod] = OrderedDict()

    def note(self, pod: Pod) -> None:
        """Take over the pod of a call."""
        if self._state.pod(pod.uid) is not None:
            self._by_uid.pop(pod.uid, None)
            return
        self._by_uid[pod.uid] = pod
        self._by_uid.move_to_end(pod.uid)
        if len(self._by_uid) > self._limit:
            self._by_uid.popitem(last=False)

    def pod(self, uid: str) -> Pod | None:
        """Return a pod, from the state or else from its last call."""
        return self._state.pod(uid) or self._by_uid.get(uid)

    def forget(self, uid: str) -> None:
        """Forget the call of a pod whose bind has ended."""
        self._by_uid.pop(uid, None)
