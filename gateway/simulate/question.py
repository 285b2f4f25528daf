"""A what-if question: a pod, a profile, and nodes that need not exist."""

from collections.abc import Iterable, Sequence

import msgspec

from gateway.cluster.state import ClusterState
from moorage.models import NodeManifest, Pod


class Question(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is asked.

    Attributes:
        pod: The pod.
        pod_json: The same as JSON.
        profile: The profile whose plugins are asked.
        names: The nodes, in order, without those that nobody knows.
        unknown: Nodes of the question that the cluster does not have.
        given: Those nodes that came with the question and differ from the cluster's.
    """

    pod: Pod
    pod_json: bytes
    profile: str
    names: Sequence[str]
    unknown: Sequence[str] = ()
    given: Sequence[NodeManifest] = ()


def about(
    state: ClusterState,
    pod: Pod,
    pod_json: bytes,
    *,
    profile: str = "",
    names: Iterable[str] | None = None,
    given: Sequence[NodeManifest] | None = None,
) -> Question:
    """Return a question about *names* or *given* nodes, or else about all nodes of the cluster."""
    entries = state.rows.entries
    profile = profile or pod.spec.scheduler_name
    if given is not None:
        different = [n for n in given if n.name not in entries or entries[n.name].manifest != n]
        return Question(
            pod=pod,
            pod_json=pod_json,
            profile=profile,
            names=list(dict.fromkeys(node.name for node in given)),
            given=different,
        )
    asked = list(entries) if names is None else list(dict.fromkeys(names))
    return Question(
        pod=pod,
        pod_json=pod_json,
        profile=profile,
        names=[name for name in asked if name in entries],
        unknown=[name for name in asked if name not in entries],
    )
