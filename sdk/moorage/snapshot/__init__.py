"""The cluster as one scheduling cycle sees it: columns of numpy arrays over nodes."""

from moorage.snapshot.encoded import Encoded
from moorage.snapshot.node import Node
from moorage.snapshot.nodes import Nodes
from moorage.snapshot.resources import Amounts
from moorage.snapshot.snapshot import Snapshot

__all__ = ["Amounts", "Encoded", "Node", "Nodes", "Snapshot"]
