"""How much the binder takes on, waits and keeps: the part of its settings that binds know."""

from dataclasses import dataclass

from moorage_host.settings import setting


@dataclass(frozen=True, kw_only=True)
class BindLimits:
    """Limits of binds; `BinderSettings` has them as options."""

    concurrency: int = setting(64, "Binds that talk to the API server at the same time.", minimum=1)
    max_waiting: int = setting(
        1024, "Binds that may wait for that; more get RESOURCE_EXHAUSTED.", minimum=0
    )
    max_permit_waiting: int = setting(
        1024,
        "Binds that plugins may have wait for others (Permit); more get RESOURCE_EXHAUSTED. They "
        "do not count in --concurrency and --max-waiting.",
        minimum=0,
    )
    permit_reserve: float = setting(
        0.5,
        "Time before the deadline at which such a wait ends, for PreBind plugins and the write.",
        unit="seconds",
        minimum=0,
    )
    permit_ask_interval: float = setting(
        0.05,
        "How long binds that wait for others are not asked again after another one came that waits "
        "too: not every pod of a large gang has to be asked for every other.",
        unit="seconds",
        minimum=0,
    )
    retry_initial: float = setting(
        0.1,
        "The first wait before a request is sent again is random between 0 and this; it doubles.",
        unit="seconds",
        minimum=0.001,
    )
    retry_maximum: float = setting(
        2.0, "Waits before a request is sent again grow up to this.", unit="seconds", minimum=0.001
    )
    retry_reserve: float = setting(
        0.1,
        "Time that must be left before the deadline for a request to be sent again, and in which "
        "the pod is read if its bind had no answer until then.",
        unit="seconds",
        minimum=0,
    )
    retry_after_limit: float = setting(
        600.0,
        "How long the API server's Retry-After is kept; a longer one is taken for a mistake.",
        unit="seconds",
        minimum=0,
    )
    kept_attempts: int = setting(
        4096,
        "Pods whose unknown outcome or Retry-After is kept for their next attempt; the oldest is "
        "forgotten first, which costs one request at most.",
        minimum=1,
    )
    written_binds: int = setting(
        30_000,
        "Binds that a gateway which takes over can learn of (Barrier): 100 a second for 5 minutes. "
        "About 0.6 kB each.",
        minimum=0,
    )
    written_binds_age: float = setting(
        300.0,
        "How long they are kept. Longer than a gateway's view of the cluster may be old.",
        unit="seconds",
        minimum=0,
    )
