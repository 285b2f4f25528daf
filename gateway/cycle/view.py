"""What cycles ask about the cluster as a whole."""

from typing import Protocol

from gateway.cluster.rows import Rows


class ClusterView(Protocol):
    """What a cycle asks about the cluster as a whole."""

    def synced(self) -> bool:
        """Whether nodes and pods have been read."""

    def age(self) -> float:
        """Return for how many seconds the API server has been silent."""

    def is_stale(self) -> bool:
        """Whether the state is too old to decide by."""

    @property
    def generation(self) -> int:
        """The generation of the cluster state."""

    @property
    def rows(self) -> Rows:
        """The nodes by row."""
