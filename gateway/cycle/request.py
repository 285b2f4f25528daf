"""What a cycle is about: a pod, and the nodes that it is tried on."""

from collections.abc import Sequence
from typing import Self

import msgspec
from msgspec.structs import replace

from gateway.calls import ANSWER_SECONDS, GivenNode, PreemptCall, SchedulingCall
from moorage.models import Pod


class Subject(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A pod and the nodes that it is tried on."""

    pod: Pod
    pod_json: bytes
    names: Sequence[str]
    given: Sequence[GivenNode] | None = None
    plugin: str = ""
    excluded_pods: Sequence[str] = ()
    deadline: float

    @classmethod
    def of_call(cls, call: SchedulingCall) -> Self:
        """Try the pod on the nodes of a filter or prioritize call."""
        return cls(
            pod=call.pod,
            pod_json=call.pod_json,
            names=call.node_names,
            given=call.nodes,
            plugin=call.plugin,
            deadline=call.deadline - ANSWER_SECONDS,
        )

    @classmethod
    def of_preemption(cls, call: PreemptCall) -> Self:
        """Try the pod on the candidates without their victims."""
        return cls(
            pod=call.pod,
            pod_json=call.pod_json,
            names=list(call.victims),
            excluded_pods=[uid for victims in call.victims.values() for uid in victims.uids],
            deadline=call.deadline - ANSWER_SECONDS,
        )

    def restricted(self, names: Sequence[str]) -> Self:
        """Try the same pod on some of the nodes, in the same order."""
        if self.given is None or len(names) == len(self.names):
            return replace(self, names=names)
        kept = set(names)
        given = [node for node in self.given if node.manifest.name in kept]
        return replace(self, names=names, given=given)
