"""Settings of the gateway. Fields without `setting` are for programs: no option sets them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moorage_host.process.lifecycle import AdminSettings
from moorage_host.settings import setting
from moorage_host.tls.identities import SCHEDULER

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings(AdminSettings):
    """Settings of the extender edge; the gateway's own settings extend these."""

    trace_ratio: float = setting(
        0.01,
        "Share of scheduling cycles that are traced, with their binds.",
        minimum=0,
        maximum=1,
    )
    extender_prefix: str = setting("", "Path before the verbs, as in the extender's urlPrefix.")
    extender_alias: tuple[str, ...] = setting(
        (),
        "PATH=VERB or PATH=VERB/PLUGIN: answer the verb, or one plugin's part of it, at that path"
        " too.",
    )
    scheduler_identity: tuple[str, ...] = setting(
        (SCHEDULER,),
        "DNS names in the certificates of kube-schedulers, the only callers of the extender; "
        "NAME=PROFILE, also more than once: one that may place pods of these schedulerNames only.",
    )
    http_timeout: float = setting(
        5.0,
        "The extender's httpTimeout in kube-scheduler's configuration.",
        unit="seconds",
        minimum=0.1,
    )
    body_limit: int = setting(
        48 * _MIB,
        "Largest body of a call; reading it may take 7 times its size of memory.",
        unit="bytes",
        minimum=1,
    )
    body_bytes_in_flight: int = 56 * _MIB
    """Bytes of all bodies under way: one of the largest, and small ones beside it."""
    given_nodes_cached: int = 5000
    """Whole nodes in calls that are recognised when unchanged: the largest cluster that
    Kubernetes supports, up to 50 kB of memory each."""
    http_keep_alive: float = 300.0
    """Seconds that an idle connection stays open; kube-scheduler drops its own after 90."""
    http_connections: int = 1024
    """Open connections: kube-scheduler has one for each bind under way, at most some hundred.
    Beyond that, an idle one of the caller with most is closed."""
    http_drain_time: float = 5.0
    """Seconds for which open connections are still served when the gateway stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings(EdgeSettings):
    """How the gateway runs."""

    shadow_filter: tuple[str, ...] = setting(
        (),
        "Filter replicas for the policy's shadows alone, as host:port; without them those of "
        "--filter run shadows.",
    )
    shadow_scorer: tuple[str, ...] = setting((), "The same for scorer replicas.")
    shadow_timeout: float = 0.2
    """Seconds that a replica has for a phase of a shadow."""
    simulate_calls: int = 2
    """Questions at /simulate that are answered at a time."""
    simulate_waiting: int = 16
    """Such questions that may wait for that; more are refused."""
    extender_host: str = setting(
        "0.0.0.0",  # noqa: S104 - kube-scheduler runs elsewhere
        "Address of the extender.",
    )
    extender_port: int = setting(
        8888,
        "Port of the extender; 0 takes a free one.",
        minimum=0,
        maximum=65535,
    )
    filter: tuple[str, ...] = setting(
        ("filter:50051",), "Filter replicas, as host:port; each address is a replica."
    )
    scorer: tuple[str, ...] = setting(
        ("scorer:50051",), "Scorer replicas, as host:port; each address is a replica."
    )
    binder: str = setting("dns:///binder:50051", "The binder, as host:port.")
    leader_election: Literal["none", "lease"] = setting(
        "none",
        "Whether several gateways elect a leader by a Lease, or not (none: one gateway, or one "
        "beside each kube-scheduler).",
    )
    lease_name: str = "moorage-gateway"
    """Name of the Lease, in the gateway's own namespace or that of the kubeconfig's context."""
    lease_duration: float = setting(
        15.0,
        "Time without renewal after which another gateway takes the Lease.",
        unit="seconds",
        minimum=1,
    )
    lease_renew_deadline: float | None = None
    """Seconds after its last renewal at which the leader stops deciding; by default two thirds of
    the duration, as for kube-scheduler."""
    lease_retry_period: float | None = None
    """Seconds between two renewals, by default a fifth of that; others look four times as often."""
    barrier_timeout: float | None = None
    """Seconds that a start or takeover waits for a binder; by default somewhat longer than the HTTP
    timeout, which an earlier gateway's bind may take."""
    config: Path | None = setting(
        None, "The policy (MoorageConfiguration). Without it, the profile moorage has no plugins."
    )
    config_reload_interval: float = 1.0
    """Seconds between two looks at the policy file; a change counts when it was read twice."""
    kubeconfig: Path | None = setting(
        None, "How to reach the API server; without it, by the pod's service account."
    )
    max_cache_age: float = setting(
        180.0,
        "Silence of the API server after which the gateway is not ready and calls fail.",
        unit="seconds",
        minimum=1,
    )
    kept_changes: int = 50_000
    """Changes of the state that are kept, 0.2 kB each: minutes of a busy cluster. A replica further
    behind gets everything."""
    max_object_bytes: int = setting(
        65_536,
        "Largest object of a kind that plugins read; larger ones are left out.",
        unit="bytes",
        minimum=1024,
    )
    unknown_bind_wait: float = 5.0
    """Seconds after its deadline until the API server is asked about a bind of unknown outcome."""
    claim_ttl: float = setting(
        120.0,
        "How long a claim lasts without a bind.",
        unit="seconds",
        minimum=1,
    )
    group_bind_wait: float = 1.0
    """Seconds that members of a pod group keep claimed nodes once kube-scheduler has gone on."""
    unknown_pod_wait: float = 0.5
    """Seconds that a call waits for a pod that the watch has not shown: a filter that may claim, or
    a bind without a filter call. A watch is later only when it breaks."""
    recheck_time: float = 0.05
    """Seconds that a pod which is rejected everywhere once more waits for newer state; 0 never."""
    cache_bytes: int = setting(
        32 << 20,
        "Memory for answers about equal pods: for each kind of pod and node 10 bytes for filters;"
        " 8, and 8 for each score plugin, for scores. 0 caches nothing.",
        unit="bytes",
        minimum=0,
    )
    cache_verify_share: float = setting(
        0.0,
        "Share of cached answers about which replicas are asked too, to count differences "
        "(moorage_cache_differences_total).",
        minimum=0,
        maximum=1,
    )
    filter_wait: float = 3.0
    """Seconds after the last filter was lost in which cycles wait for one."""
    scorer_wait: float = 3.0
    """Seconds after the last scorer was lost in which cycles wait for one."""
    min_nodes_per_shard: int = 100
    """Fewest nodes that a replica gets of a shared cycle: the time of fewer says too little."""
    min_shard_time: float = setting(
        0.005,
        "Least expected time of a replica's part of a shared cycle; 0 shares every cycle.",
        unit="seconds",
        minimum=0,
    )
    hedge_quantile: float = 0.95
    """A replica that needs `hedge_factor` times longer than this share of cycles is slow."""
    hedge_factor: float = 3.0
    hedge_floor: float = 0.05
    """Seconds for which a replica is never slow."""
    session_timeout: float = 5.0
    """Seconds that a replica has to greet a new session."""
    resolve_interval: float = 2.0
    """Seconds between two lookups of names of replicas, and of the binder's plugins: so soon a new
    replica helps, at a few questions a second for DNS."""
    delta_interval: float = 0.05
    """Seconds after which 50 and more changes are sent to replicas between cycles."""
    decision_memory: int = setting(
        67_108_864,
        "Memory for decisions beyond the newest 256, of 10,000 pods by default; one takes about "
        "4 kB with all in-tree plugins.",
        unit="bytes",
        minimum=0,
    )
    decision_arrays: int = 256
    """Attempts of which each node's verdict and scores are kept: 2 bytes a node, 4 a feasible one,
    4 to 12 per score plugin. People look at the newest."""
    decision_array_memory: int = 67_108_864
    """Bytes for these verdicts and scores; the oldest go first."""
    decision_clients: int = 16
    """Clients that may follow /decisions/stream at once: people with the inspector open."""
    decision_client_queue: int = 1000
    """Decisions that wait for a client of /decisions/stream; a slower one misses the oldest."""
    retry_interval: float = 2.0
    """Seconds between two rounds in which rejected pods are tried again, at least."""
    cycle_state_memory: int = 67_108_864
    """Bytes of what filter and score plugins keep for binds to come; the oldest goes first."""
    inspector_interval: float = 5.0
    """Seconds of an interval in which the inspector shows what plugins took and rejected."""
    decision_top: int = 5
    """Best nodes whose scores are kept plugin by plugin: the winner, and who came close."""
