"""The pods that have no node, as the watch shows them: what the list of pending pods is made of.

Nothing is asked of the API server, so the list is at hand however many pods wait.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.decisions.known import Known, Object
from gateway.decisions.why import Explanation
from moorage.models import Pod

COMPARED_AT_ONCE = 2000
"""Names that are compared before cycles get their turn; each takes about 1 us."""


async def oldest_first(
    state: ClusterState, waiting: Mapping[str, Waiting], namespace: str
) -> Sequence[Pod]:
    """Return the pods without a node, of one namespace or, for "", of all."""
    known = filter(None, map(state.pods.get, waiting))
    pods = [each for each in known if namespace in ("", each.namespace)]
    # Texts are compared fast; the rest goes on beside cycles.
    return await asyncio.to_thread(
        sorted, pods, key=lambda each: f"{each.metadata.creation_timestamp} {each.name}"
    )


def matches(words: Sequence[str], pod: Pod, *more: str) -> bool:
    """Whether a pod's name, or something *more* about it, has all of the lower-case *words*."""
    text = " ".join((f"{pod.namespace}/{pod.name}", *more)).lower()
    return all(word in text for word in words)


async def with_a_node(state: ClusterState, words: Sequence[str]) -> AsyncIterator[Pod]:
    """Yield pods on nodes whose names match, not all at once: cycles go on."""
    for count, uid in enumerate(state.known_pods(), start=1):
        pod = state.pods.get(uid)
        if pod is not None and pod.spec.node_name and matches(words, pod):
            yield pod
        if count % COMPARED_AT_ONCE == 0:
            await asyncio.sleep(0)


def as_shown(pod: Pod, waiting: Waiting) -> Object:
    """Return a pod as the API shows it, as far as an explanation needs it."""
    metadata, spec = pod.metadata, pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": waiting.reason,
        "message": waiting.message,
        "lastTransitionTime": waiting.since,
    }
    return {
        "metadata": {
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "creationTimestamp": metadata.creation_timestamp,
            "deletionTimestamp": metadata.deletion_timestamp,
        },
        "spec": {
            "nodeName": spec.node_name,
            "schedulerName": spec.scheduler_name,
            "nodeSelector": spec.node_selector,
            "affinity": {"nodeAffinity": msgspec.to_builtins(affinity)} if affinity else {},
            "schedulingGroup": bool(spec.scheduling_group),
            "schedulingGates": [{"name": gate.name} for gate in spec.scheduling_gates],
        },
        "status": {
            "nominatedNodeName": pod.status.nominated_node_name,
            "conditions": [condition] if waiting.reason else [],
        },
    }


def item(pod: Pod, known: Known, found: Explanation) -> dict[str, Any]:
    """Return a pod of the list."""
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "schedulerName": pod.spec.scheduler_name,
        "created": pod.metadata.creation_timestamp,
        "attempts": len(known.attempts),
        **found.content(),
    }
