"""The cluster as one scheduling cycle sees it: columns of numpy arrays over nodes."""

from moorage.snapshot.columns.encoded import Encoded
from moorage.snapshot.columns.pods import CarriedTerm
from moorage.snapshot.columns.resources import Amounts
from moorage.snapshot.node import Node
from moorage.snapshot.nodes import Nodes
from moorage.snapshot.objects import Objects, ObjectStore
from moorage.snapshot.snapshot import Snapshot

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
