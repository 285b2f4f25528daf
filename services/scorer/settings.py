"""Settings of the scorer service."""

from dataclasses import dataclass
from pathlib import Path

from moorage_host.rpc.serve import ServerSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerSettings(ServerSettings):
    """How the scorer service runs."""

    plugin: tuple[Path, ...] = setting(
        (), "A Python file or folder with plugins; may be given several times."
    )
