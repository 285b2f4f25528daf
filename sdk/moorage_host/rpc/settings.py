"""The settings of a service that runs cycles."""

from dataclasses import dataclass
from pathlib import Path

from moorage.plugin.cycle_state import CYCLE_STATE_BYTES
from moorage.snapshot.snapshot import FIRST_CAPACITY, MAX_NODES
from moorage_host.plugins.replica import MAX_OBJECTS, MAX_PODS
from moorage_host.rpc.adhoc import ConcurrencyLimit
from moorage_host.rpc.serve import ServerSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings(ServerSettings):
    """How a service that runs cycles runs."""

    plugin: tuple[Path, ...] = setting((), "A Python file or folder with plugins; repeatable.")
    max_cycle_state_bytes: int = CYCLE_STATE_BYTES
    """Bytes that a plugin may keep in one cycle for the bind (cycle state)."""
    max_nodes: int = setting(
        MAX_NODES,
        "Nodes of a session; a message with one more is refused.",
        unit="nodes",
        minimum=FIRST_CAPACITY,
    )
    max_pods: int = setting(
        MAX_PODS,
        "Pods of a session.",
        unit="pods",
        minimum=1,
    )
    max_objects: int = setting(
        MAX_OBJECTS,
        "Objects of other kinds in a session.",
        unit="objects",
        minimum=1,
    )
    adhoc_calls: int = setting(
        2,
        "Manual calls that run at a time, in the time that cycles leave.",
        minimum=1,
    )
    adhoc_waiting: int = setting(
        8, "Manual calls that may wait for that; more get RESOURCE_EXHAUSTED.", minimum=0
    )
    adhoc_nodes: int = setting(
        5000, "Nodes that a manual call may be about.", unit="nodes", minimum=1
    )
    adhoc_manifests: int = setting(
        100, "Nodes that a manual call may bring itself.", unit="nodes", minimum=1
    )
    adhoc_bytes: int = setting(
        4 << 20, "Largest message of a manual call.", unit="bytes", minimum=1024
    )


REPLICA_SERVICE = "moorage.v1.ReplicaService"


def adhoc_limit(method: str, settings: CycleSettings) -> ConcurrencyLimit:
    """Return the limit for a *method* of the role, such as "moorage.v1.FilterService/Filter".

    It counts what people read of the replica too.
    """
    return ConcurrencyLimit(
        f"/{method}",
        *(f"/{REPLICA_SERVICE}/{each}" for each in ("GetState", "ListPlugins")),
        calls=settings.adhoc_calls,
        waiting=settings.adhoc_waiting,
        message_bytes=settings.adhoc_bytes,
    )
