"""What a user can set about the journal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.settings.shadow import ShadowSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings(ShadowSettings):
    """Settings of the journal; the gateway's own settings extend these."""

    journal: Path | None = setting(
        None,
        "Folder for the journal of cycles, which `moorage replay` reads; one for each gateway. "
        "Without it there is none.",
    )
    journal_segment_bytes: int = setting(
        67_108_864,
        "Size after which a new segment of the journal begins, without its snapshot of the state.",
        unit="bytes",
        minimum=65_536,
    )
    journal_segment_age: float = setting(
        3600.0,
        "Age after which a segment of the journal that has cycles is followed by a new one.",
        unit="seconds",
        minimum=1,
    )
    journal_segments: int = setting(
        16, "Segments of the journal that are kept, the newest.", minimum=2
    )
    journal_fsync: Literal["never", "interval", "each"] = setting(
        "interval",
        "When the journal is forced to disk: never (the system decides), once a second while it "
        "grows, or after each record. A journal that is not loses its newest seconds if the "
        "machine fails, and nothing if only the gateway does.",
    )
    journal_memory: int = setting(
        67_108_864,
        "Memory for what waits to be written to the journal. If a slow disk needs more, records "
        "are dropped and counted until a new segment has begun.",
        unit="bytes",
        minimum=1_048_576,
    )
    journal_retry_interval: float = setting(
        10.0,
        "How long after a failed write a new segment of the journal is tried.",
        unit="seconds",
        minimum=0.1,
    )
    journal_redact: bool = setting(
        True,
        "Leave annotations, values of environment variables and the data of Secrets out of the "
        "journal.",
    )
    journal_annotations: tuple[str, ...] = setting(
        ("moorage.io/*",),
        "Annotations that are not left out, such as those that plugins read; * stands for any "
        "characters.",
    )
