"""How much the binder takes on, waits, keeps and reports: the settings that its parts know."""

from dataclasses import dataclass
from typing import Literal

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
        "Binds that plugins may have wait for others (Permit), beside --concurrency and "
        "--max-waiting; more get RESOURCE_EXHAUSTED.",
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
        "How long binds that wait for others are not asked again after another one came "
        "that waits too.",
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
        "Time that must be left before the deadline to send a request again, and in "
        "which an unanswered bind's pod is read.",
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
        "Pods whose unknown outcome or Retry-After is kept for their next attempt, the newest.",
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
    policy_retry_interval: float = setting(
        5.0,
        "How long a policy that cannot be used is not tried again.",
        unit="seconds",
        minimum=0,
    )
    request_timeout: float = setting(
        10.0,
        "Time for a request to the API server that is no bind, such as an Event. A bind "
        "has all the time left.",
        unit="seconds",
        minimum=0.1,
    )
    retry_pods_concurrency: int = setting(
        8, "Rejected pods that are written to at the same time (RetryPods).", minimum=1
    )
    events: Literal["failures", "all", "none"] = setting(
        "failures",
        "Which Kubernetes Events to write; kube-scheduler itself writes Scheduled for every bind.",
    )
    event_queue: int = setting(
        1000, "Events that may wait to be written; more are dropped and counted.", minimum=1
    )
    event_series_window: float = setting(
        360.0,
        "Within this time the same failure is one Event with a count; kube-scheduler's number.",
        unit="seconds",
        minimum=0,
    )
    event_tries: int = setting(3, "How often an Event is tried to be written.", minimum=1)
