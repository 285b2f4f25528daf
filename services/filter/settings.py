"""Settings of the filter service."""

from dataclasses import dataclass
from pathlib import Path

from moorage.plugin.cycle_state import CYCLE_STATE_BYTES
from moorage.snapshot.snapshot import FIRST_CAPACITY, MAX_NODES
from moorage_host.rpc.serve import ServerSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSettings(ServerSettings):
    """How the filter service runs."""

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
