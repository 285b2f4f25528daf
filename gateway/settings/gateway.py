"""Settings of the gateway."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.settings.edge import EdgeSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings(EdgeSettings):
    """How the gateway runs."""

    shadow_filter: tuple[str, ...] = setting(
        (),
        "Where filter replicas are that run the shadows of the policy and nothing else, as "
        "host:port. Without one those of --filter run them.",
    )
    shadow_scorer: tuple[str, ...] = setting(
        (), "The same for scorer replicas; without one those of --scorer run shadows."
    )
    shadow_timeout: float = setting(
        0.2,
        "Time that a replica has for a phase of a shadow; see `shadow` in the policy.",
        unit="seconds",
        minimum=0.001,
    )
    shadow_disagreements: int = setting(
        100,
        "Newest disagreements that are kept of the shadow of each profile; one takes about 1 kB.",
        minimum=0,
    )
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
        "When the journal is forced to disk: never (the system decides), once a second, "
        "or after each record. What is not forced is lost if the machine fails.",
    )
    journal_memory: int = setting(
        67_108_864,
        "Memory for what waits to be written to the journal; beyond it records are "
        "dropped and counted until a new segment has begun.",
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
    simulate_calls: int = setting(
        2,
        "Questions at /simulate and /simulate/filter that are answered at a time.",
        minimum=1,
    )
    simulate_waiting: int = setting(
        16, "Such questions that may wait for that; more are refused.", minimum=0
    )
    simulate_body_limit: int = setting(
        4_194_304, "The largest body of such a question.", unit="bytes", minimum=1024
    )
    simulate_timeout: float = setting(
        10.0, "How long a service may take for such a question.", unit="seconds", minimum=0.1
    )
    extender_host: str = setting(
        "0.0.0.0",  # noqa: S104 - kube-scheduler runs elsewhere
        "Address where kube-scheduler calls the extender.",
    )
    extender_port: int = setting(
        8888,
        "Port where kube-scheduler calls the extender; 0 takes a free one.",
        minimum=0,
        maximum=65535,
    )
    filter: tuple[str, ...] = setting(
        ("filter:50051",), "Where filter replicas are, as host:port; each address is a replica."
    )
    scorer: tuple[str, ...] = setting(
        ("scorer:50051",), "Where scorer replicas are, as host:port; each address is a replica."
    )
    binder: str = setting("dns:///binder:50051", "Where the binder is, as host:port.")
    leader_election: Literal["none", "lease"] = setting(
        "none",
        "Whether several gateways elect the one that decides by a Lease (lease), or not "
        "(none: one gateway, or one beside each kube-scheduler).",
    )
    lease_namespace: str = setting(
        "moorage", "Namespace of the Lease; the gateway needs get, create and update there."
    )
    lease_name: str = setting("moorage-gateway", "Name of the Lease.")
    lease_duration: float = setting(
        15.0,
        "How long the Lease is not renewed until another gateway takes it.",
        unit="seconds",
        minimum=1,
    )
    lease_renew_deadline: float = setting(
        10.0,
        "How long after the last renewal the gateway that holds the Lease stops deciding.",
        unit="seconds",
        minimum=0.5,
    )
    lease_retry_period: float = setting(
        2.0,
        "How often the Lease is renewed; who stands by looks at it four times as often.",
        unit="seconds",
        minimum=0.1,
    )
    barrier_timeout: float = setting(
        6.0,
        "How long a binder is waited for at a start or takeover before it is left out. "
        "At least --http-timeout: so long may an earlier gateway's bind take.",
        unit="seconds",
        minimum=0.05,
    )
    config: Path | None = setting(
        None, "The policy (MoorageConfiguration); without one the profile moorage has no plugins."
    )
    config_reload_interval: float = setting(
        1.0,
        "How often the policy file is read; a new content counts once it was read twice. 0 never "
        "reads it again.",
        unit="seconds",
        minimum=0,
    )
    kubeconfig: Path | None = setting(
        None, "How to reach the API server; without one the pod's service account is used."
    )
    context: str | None = setting(None, "Context of the kubeconfig instead of its current one.")
    max_cache_age: float = setting(
        180.0,
        "Silence of the API server after which the gateway is not ready and calls fail.",
        unit="seconds",
        minimum=1,
    )
    max_interruption: float = setting(
        2.0,
        "How long nodes or pods may not be followed until the gateway is not ready.",
        unit="seconds",
        minimum=0,
    )
    kept_changes: int = setting(
        50_000,
        "Changes of the state that are kept, 0.2 kB each; a replica that is further behind gets "
        "everything.",
        minimum=1,
    )
    max_object_bytes: int = setting(
        65_536,
        "Largest object of an additional kind that plugins read; larger ones are left out.",
        unit="bytes",
        minimum=1024,
    )
    assumed_pod_ttl: float = setting(
        300.0,
        "How long a pod counts as placed after its bind until it is seen bound.",
        unit="seconds",
        minimum=1,
    )
    unknown_bind_wait: float = setting(
        5.0,
        "When the API server is asked about a bind with an unknown outcome, after its deadline.",
        unit="seconds",
        minimum=0,
    )
    claim_ttl: float = setting(
        120.0,
        "How long a pod keeps the node that it claimed while kube-scheduler does not bind it.",
        unit="seconds",
        minimum=1,
    )
    group_bind_wait: float = setting(
        1.0,
        "How long members of a pod group keep claimed nodes after kube-scheduler has "
        "gone on with other pods and no bind comes.",
        unit="seconds",
        minimum=0,
    )
    unknown_pod_wait: float = setting(
        0.5,
        "How long a call waits for a pod that the watch has not shown: a filter call if "
        "its profile may claim nodes, a bind without a filter call.",
        unit="seconds",
        minimum=0,
    )
    recheck_time: float = setting(
        0.05,
        "How long a pod that is rejected everywhere once more waits for newer state, a "
        "tenth of the time at most; 0 never does.",
        unit="seconds",
        minimum=0,
    )
    cache_bytes: int = setting(
        32 << 20,
        "Memory for answers about equal pods: for each kind of pod and node 10 bytes "
        "for filters, 8 and 8 for each score plugin for scores. 0 caches nothing.",
        unit="bytes",
        minimum=0,
    )
    cache_verify_share: float = setting(
        0.0,
        "Share of the cached answers about which replicas are asked too, to count "
        "differences (moorage_cache_differences_total): 1 finds every plugin that "
        "declares too little.",
        minimum=0,
        maximum=1,
    )
    filter_wait: float = setting(
        3.0,
        "How long after the last filter was lost cycles wait for one; later they fail at once.",
        unit="seconds",
        minimum=0,
    )
    scorer_wait: float = setting(
        3.0,
        "How long after the last scorer was lost cycles wait for one; later they give no scores.",
        unit="seconds",
        minimum=0,
    )
    min_nodes_per_shard: int = setting(
        100,
        "Fewest nodes that a replica gets where one cycle is scattered over several.",
        minimum=1,
    )
    min_shard_time: float = setting(
        0.005,
        "Least time that a replica is expected to need for its part of a scattered "
        "cycle. 0 scatters at any cost.",
        unit="seconds",
        minimum=0,
    )
    hedge_quantile: float = setting(
        0.95,
        "A replica is slow if it needs longer, by --hedge-factor, than this share of "
        "the newest cycles; another one gets the same work.",
        minimum=0,
        maximum=1,
    )
    hedge_factor: float = setting(3.0, "See --hedge-quantile.", minimum=1)
    hedge_floor: float = setting(
        0.05, "How long a replica is never slow.", unit="seconds", minimum=0.001
    )
    session_timeout: float = setting(
        5.0, "Time that a replica has to greet a new session.", unit="seconds", minimum=0.1
    )
    resolve_interval: float = setting(
        5.0,
        "How often the names of replicas are looked up, and the binder's plugins.",
        unit="seconds",
        minimum=0.1,
    )
    delta_interval: float = setting(
        0.05,
        "How often 50 and more changes are sent to replicas between cycles; fewer go "
        "with a cycle, or ten times less often.",
        unit="seconds",
        minimum=0.001,
    )
    decision_pods: int = setting(10_000, "Pods whose decisions are kept, the newest.", minimum=1)
    decision_attempts: int = setting(
        5, "Attempts that are kept for each pod, the newest.", minimum=1
    )
    decision_memory: int = setting(
        67_108_864,
        "Memory for decisions, other than the newest 256; one takes about 4 kB with all "
        "in-tree plugins.",
        unit="bytes",
        minimum=0,
    )
    decision_arrays: int = setting(
        256,
        "Newest attempts of which each node's verdict and scores are kept: 2 bytes a "
        "node, 4 a feasible one, 4 to 12 for each score plugin. 0 keeps none.",
        minimum=0,
    )
    decision_array_memory: int = setting(
        67_108_864,
        "Memory for these verdicts and scores; the oldest go first.",
        unit="bytes",
        minimum=0,
    )
    decision_clients: int = setting(
        16, "Clients that may follow /decisions/stream at the same time.", minimum=0
    )
    decision_client_queue: int = setting(
        1000,
        "Decisions that wait for a client of /decisions/stream; a slower one misses the oldest.",
        minimum=1,
    )
    retry_pods: int = setting(
        1000,
        "Pods without a feasible node that are kept, the newest, to be tried again where "
        "kube-scheduler would not do it.",
        minimum=0,
    )
    retry_interval: float = setting(
        2.0,
        "How often such pods are tried again at most.",
        unit="seconds",
        minimum=1,
    )
    cycle_state_memory: int = setting(
        67_108_864,
        "Memory for what filter and score plugins keep for binds to come (cycle state); the oldest "
        "goes first.",
        unit="bytes",
        minimum=0,
    )
    inspector_interval: float = setting(
        5.0,
        "How long the intervals are in which the inspector shows what plugins took and rejected.",
        unit="seconds",
        minimum=0.1,
    )
    decision_top: int = setting(5, "Best nodes whose scores are kept plugin by plugin.", minimum=0)
