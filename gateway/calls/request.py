"""What one scheduling cycle is asked: a pod, and the nodes that it is tried on."""

from collections.abc import Sequence
from typing import Self

import msgspec
from msgspec.structs import replace

from gateway.calls.node_set import NodeSet
from moorage.models import Pod


class CycleRequest(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A pod and the nodes that it is tried on.

    Attributes:
        pod: The pod, which has a name and a UID.
        pod_json: The pod's JSON, verbatim.
        nodes: The nodes.
        plugin: The plugin named in the URL, or "" for the pod's whole profile.
        excluded_pods: UIDs of pods that count as gone.
        deadline: When the answer must be out, in seconds of `loop.time()`.
        traceparent: W3C trace context of the span that this belongs to; "" if it is not traced.
        caller: Who asks: the address, and the names in the certificate.
    """

    pod: Pod
    pod_json: bytes
    nodes: NodeSet
    plugin: str = ""
    excluded_pods: Sequence[str] = ()
    deadline: float
    traceparent: str = ""
    caller: str = ""

    @property
    def profile(self) -> str:
        """The profile that the pod asks for, by its schedulerName."""
        return self.pod.spec.scheduler_name

    @property
    def pod_name(self) -> str:
        """The pod, as NAMESPACE/NAME."""
        return f"{self.pod.namespace}/{self.pod.name}"

    def on(self, nodes: NodeSet) -> Self:
        """Try the same pod on other nodes."""
        return self if nodes is self.nodes else replace(self, nodes=nodes)
