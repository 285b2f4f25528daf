"""The settings of a service that runs cycles."""

from dataclasses import dataclass
from pathlib import Path

from moorage.plugin.cycle_state import CYCLE_STATE_BYTES
from moorage.snapshot.snapshot import MAX_NODES
from moorage_host.plugins.replica import MAX_OBJECTS, MAX_PODS
from moorage_host.rpc.serve import ServerSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings(ServerSettings):
    """How a service that runs cycles runs."""

    plugin: tuple[Path, ...] = setting((), "A Python file or folder with plugins; repeatable.")
    max_cycle_state_bytes: int = CYCLE_STATE_BYTES
    """Bytes that a plugin may keep in one cycle for the bind (cycle state)."""
    max_nodes: int = MAX_NODES
    """Nodes of a session: twenty times as many as Kubernetes supports."""
    max_pods: int = MAX_PODS
    """Pods of a session: three times as many as Kubernetes supports."""
    max_objects: int = MAX_OBJECTS
    """Objects of other kinds in a session, which the gateway limits too."""
    adhoc_calls: int = 2
    """Manual calls that run at a time, in the time that cycles leave."""
    adhoc_waiting: int = 8
    """Manual calls that may wait for that: a few people, no load."""
    adhoc_nodes: int = 5000
    """Nodes that a manual call may be about: the largest cluster that Kubernetes supports."""
    adhoc_manifests: int = 100
    """Nodes that a manual call may bring itself: written by hand."""
    adhoc_bytes: int = 4 << 20
    """Bytes of the largest message of a manual call: that many manifests of 40 kB."""
