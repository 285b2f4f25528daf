"""The cluster as one scheduling cycle sees it: columns of numpy arrays over nodes."""

from moorage.snapshot.encoded import Encoded
from moorage.snapshot.node import Node
from moorage.snapshot.nodes import Nodes
from moorage.snapshot.objects import Objects, ObjectStore
from moorage.snapshot.resources import Amounts
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.terms import CarriedTerm

__all__ = [
    "Amounts",
    "CarriedTerm",
    "Encoded",
    "Node",
    "Nodes",
    "ObjectStore",
    "Objects",
    "Snapshot",
]
