"""What a user can set at the edge."""

from dataclasses import dataclass

from moorage_host.settings import setting
from moorage_host.tls.identities import SCHEDULER
from moorage_host.tracing.sink import TracingSettings

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings(TracingSettings):
    """Settings of the extender edge; the gateway's own settings extend these."""

    trace_ratio: float = setting(
        0.01,
        "Share of the scheduling cycles that are traced, with their binds, if spans are sent.",
        minimum=0,
        maximum=1,
    )
    extender_prefix: str = setting(
        "", "Path before the verbs, as in the urlPrefix of the extender's configuration."
    )
    extender_alias: tuple[str, ...] = setting(
        (),
        "PATH=VERB or PATH=VERB/PLUGIN: the verb, or one plugin's answer to it, at that whole path "
        "too.",
    )
    scheduler_identity: tuple[str, ...] = setting(
        (SCHEDULER,), "DNS names in the certificates of kube-schedulers, which alone may call."
    )
    http_timeout: float = setting(
        5.0,
        "The httpTimeout of the extender's configuration in kube-scheduler.",
        unit="seconds",
        minimum=0.1,
    )
    body_limit: int = setting(
        48 * _MIB,
        "Largest body of a call. Reading one may take 7 times its size of memory.",
        unit="bytes",
        minimum=1,
    )
    body_bytes_in_flight: int = setting(
        56 * _MIB,
        "Bodies of all calls under way; a call that does not fit is refused, and the "
        "scheduler tries again.",
        unit="bytes",
        minimum=1,
    )
    given_nodes_cached: int = setting(
        5000,
        "Whole nodes in calls that are known again when unchanged; up to 50 kB of memory for each.",
        minimum=1,
    )
    omit_zero_scores: bool = setting(
        True, "Leave nodes at 0 out of prioritize answers unless every node is at 0."
    )
    http_keep_alive: float = setting(
        300.0,
        "How long an idle connection stays open; kube-scheduler drops its own after 90 s.",
        unit="seconds",
        minimum=100.0,
    )
    http_connections: int = setting(
        1024,
        "Open connections; with more, one that waits for its caller is closed, of the caller that "
        "has most.",
        unit="connections",
        minimum=1,
    )
    http_drain_time: float = setting(
        5.0,
        "How long open connections are still served when the gateway stops.",
        unit="seconds",
        minimum=0.0,
    )
