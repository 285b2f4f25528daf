"""Changes of the cluster state; sessions put them on the wire."""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage.models import ObjectName, Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a replica needs to reach a generation.

    Attributes:
        generation: The generation that it reaches.
        nodes: New and changed nodes: row and JSON.
        removed_rows: Rows without a node.
        pods: New, changed and moved pods: row of the node, and the pod.
        removed_pods: UIDs of pods that are on no node.
        objects: New and changed objects of further kinds, as JSON.
        removed_objects: Those that are gone.
        partial: Whether more must come until that generation is reached.
    """

    generation: int
    nodes: Sequence[tuple[int, bytes]] = ()
    removed_rows: Sequence[int] = ()
    pods: Sequence[tuple[int, Pod]] = ()
    removed_pods: Sequence[str] = ()
    objects: Sequence[tuple[ObjectName, bytes]] = ()
    removed_objects: Sequence[ObjectName] = ()
    partial: bool = False
