"""The settings of the binder service."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moorage_host.rpc.serve import ServerSettings
from moorage_host.settings import setting
from services.binder.binding.limits import BindLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class BinderSettings(BindLimits, ServerSettings):
    """Settings of the binder service."""

    max_concurrent_rpcs: int = setting(
        20,
        "Calls under way, sessions included, beyond which more get RESOURCE_EXHAUSTED; 0 is no "
        "limit. Each may hold a message. A gateway needs up to 5, and twice as many while its "
        "certificate changes.",
        minimum=0,
    )
    max_message_bytes: int = setting(
        6 << 20,
        "The largest message that is taken; a larger one ends its call with RESOURCE_EXHAUSTED. A "
        "gateway sends states in parts of 2 MiB, which may be longer by one object.",
        unit="bytes",
        minimum=4 << 20,
    )
    kubeconfig: Path | None = setting(
        None,
        "How to reach the API server. Without it, the pod's service account is used if there is "
        "one, else KUBECONFIG, else ~/.kube/config.",
    )
    plugin: tuple[Path, ...] = setting(
        (), "A Python file or folder with plugins; may be given several times."
    )
    context: str | None = setting(None, "Context of the kubeconfig instead of its current one.")
    policy_retry_interval: float = setting(
        5.0,
        "How long a policy that cannot be used is not tried again.",
        unit="seconds",
        minimum=0,
    )
    bind_timeout: float = setting(
        10.0,
        "Time for a bind when the caller gives no deadline or a later one.",
        unit="seconds",
        minimum=0.1,
    )
    answer_margin: float = setting(
        0.1,
        "Time before the caller's deadline at which it gets an answer, known outcome or not.",
        unit="seconds",
        minimum=0,
    )
    request_timeout: float = setting(
        10.0,
        "Time for one request to the API server that is no part of a bind, such as an Event. A "
        "bind is one request with all the time left.",
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
