"""Writes the bodies of requests to extenders."""

from collections.abc import Mapping, Sequence

from moorage.models import Pod
from sandbox.scheduler.extenders.gojson import dumps


def filter_body(pod: bytes, nodes: Mapping[str, bytes], names_only: bool) -> bytes:
    """Write ExtenderArgs, the body of filter and prioritize."""
    if names_only:
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, dumps(list(nodes)))
    items = b",".join(nodes.values())
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, items)


def preempt_body(
    pod: bytes, victims: Mapping[str, Sequence[tuple[str, bytes]]], uids_only: bool
) -> bytes:
    """Write ExtenderPreemptionArgs; victims are uid and JSON per node, highest priority first."""
    nodes = b",".join(
        b'%b:{"Pods":[%b],"NumPDBViolations":0}'
        % (dumps(node), b",".join(_victim(*victim, uids_only) for victim in victims[node]))
        for node in sorted(victims)
    )
    if uids_only:
        return b'{"Pod":%b,"NodeNameToVictims":null,"NodeNameToMetaVictims":{%b}}' % (pod, nodes)
    return b'{"Pod":%b,"NodeNameToVictims":{%b},"NodeNameToMetaVictims":null}' % (pod, nodes)


def bind_body(pod: Pod, node: str) -> bytes:
    """Write ExtenderBindingArgs."""
    return dumps(
        {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
    )


def _victim(uid: str, document: bytes, uids_only: bool) -> bytes:
    return b'{"UID":%b}' % dumps(uid) if uids_only else document
