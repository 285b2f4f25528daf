"""How much the binder takes on, waits, keeps and reports: the settings that its parts know."""

from dataclasses import dataclass
from typing import Literal

from moorage_host.settings import setting


@dataclass(frozen=True, kw_only=True)
class BindLimits:
    """Limits of binds; `BinderSettings` has them as options."""

    concurrency: int = setting(64, "Binds that talk to the API server at the same time.", minimum=1)
    max_waiting: int = 1024
    """Binds that may wait for that: ten seconds of the fastest scheduler."""
    max_permit_waiting: int = 1024
    """Binds that plugins may have wait for others (Permit), beside those."""
    permit_reserve: float = 0.5
    """Seconds before the deadline at which such a wait ends, for PreBind plugins and the write."""
    permit_ask_interval: float = 0.05
    """Seconds in which binds that wait are not asked again after another one came."""
    retry_initial: float = 0.1
    """Seconds up to which the first wait is before a request is sent again; it doubles."""
    retry_maximum: float = 2.0
    """Seconds up to which it grows."""
    retry_reserve: float = 0.1
    """Seconds before the deadline that are left for reading the pod of an unanswered bind."""
    retry_after_limit: float = 600.0
    """Seconds; a longer Retry-After of the API server is taken for a mistake."""
    kept_attempts: int = 4096
    """Pods whose unknown outcome or Retry-After is kept for their next attempt, the newest."""
    written_binds: int = 30_000
    """Binds that a gateway which takes over can learn of: 100 a second for 5 min, 0.6 kB each."""
    written_binds_age: float = 300.0
    """Seconds that they are kept: longer than a gateway's view of the cluster may be old."""
    policy_retry_interval: float = 5.0
    """Seconds for which a policy that cannot be used is not tried again."""
    request_timeout: float = 10.0
    """Seconds for a request to the API server that is no bind, such as an Event. A bind has all the
    time left."""
    events: Literal["failures", "all", "none"] = setting(
        "failures",
        "Which Kubernetes Events to write; kube-scheduler itself writes Scheduled for every bind.",
    )
