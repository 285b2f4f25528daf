"""The settings that the filter and scorer services share."""

from dataclasses import dataclass
from pathlib import Path

from moorage.plugin.cycle_state import CYCLE_STATE_BYTES
from moorage.snapshot.snapshot import FIRST_CAPACITY, MAX_NODES
from moorage_host.plugins.replica import MAX_OBJECTS, MAX_PODS
from moorage_host.rpc.serve import ServerSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings(ServerSettings):
    """How a service that runs cycles runs."""

    plugin: tuple[Path, ...] = setting(
        (), "A Python file or folder with plugins; may be given several times."
    )
    max_cycle_state_bytes: int = setting(
        CYCLE_STATE_BYTES,
        "What a plugin may keep in one cycle for the bind (cycle state); more fails the plugin.",
        unit="bytes",
        minimum=0,
    )
    max_nodes: int = setting(
        MAX_NODES,
        "Rows of a session's tables; a session message with a node beyond them is refused.",
        unit="nodes",
        minimum=FIRST_CAPACITY,
    )
    max_pods: int = setting(
        MAX_PODS,
        "Pods of a session; a session message with one more is refused.",
        unit="pods",
        minimum=1,
    )
    max_objects: int = setting(
        MAX_OBJECTS,
        "Objects of the further kinds that plugins read, in a session; a session message with one "
        "more is refused.",
        unit="objects",
        minimum=1,
    )
    by_hand_calls: int = setting(
        2,
        "Calls by hand (the methods for people) that run at a time. They get a part of the time "
        "that cycles of sessions leave.",
        minimum=1,
    )
    by_hand_waiting: int = setting(
        8, "Calls by hand that may wait for that; more get RESOURCE_EXHAUSTED.", minimum=0
    )
    by_hand_nodes: int = setting(
        5000, "Nodes that a call by hand may be about.", unit="nodes", minimum=1
    )
    by_hand_manifests: int = setting(
        100, "Nodes that a call by hand may bring itself.", unit="nodes", minimum=1
    )
    by_hand_bytes: int = setting(
        4 << 20, "The largest message of a call by hand.", unit="bytes", minimum=1024
    )
