"""Which pods wait because plugins rejected all their nodes."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.cycle.decision import Decision


@dataclass(frozen=True, slots=True)
class RejectedPod:
    """A pod whose latest attempt found no node, and the plugins that rejected some."""

    namespace: str
    name: str
    uid: str
    plugins: frozenset[str]


class RejectedPods:
    """The pods whose latest attempt found no node, the newest ones."""

    def __init__(self, limit: int) -> None:
        """Keep at most *limit* pods."""
        self._limit = limit
        self._pods: OrderedDict[str, RejectedPod] = OrderedDict()

    def note(self, decision: Decision) -> None:
        """Take over how the filter phase of an attempt ended."""
        self._pods.pop(decision.uid, None)
        record = decision.filter
        if record is None or record.feasible:
            return
        plugins = frozenset(plugin.plugin for plugin in record.plugins if plugin.rejected)
        self._pods[decision.uid] = RejectedPod(
            decision.namespace, decision.pod, decision.uid, plugins
        )
        if len(self._pods) > self._limit:
            self._pods.popitem(last=False)

    def by(self, plugin: str) -> Sequence[RejectedPod]:
        """Return the pods of which the plugin rejected nodes."""
        return [pod for pod in self._pods.values() if plugin in pod.plugins]

    def drop(self, uid: str) -> None:
        """Keep a pod no longer."""
        self._pods.pop(uid, None)
