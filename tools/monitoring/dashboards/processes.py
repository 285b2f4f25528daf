"""The dashboard of replicas and processes."""

from tools.monitoring.dashboards.model import Dashboard, Panel, Query, Row
from tools.monitoring.dashboards.parts import age, quantile, rare, rate, value

BUILD = Query(
    expression="sum by (pod, service, version, python, grpc) (moorage_build_info{$own})",
    legend="{{pod}}",
)

REPLICAS = Row(
    title="Replicas",
    panels=[
        Panel(
            title="Replicas that take part",
            about="As each gateway sees them. Binders count only if bind plugins read the state.",
            unit="none",
            queries=[value("moorage_replicas_ready", "service", "pod", by="max")],
        ),
        Panel(
            title="Sessions opened",
            about="Each sends the whole state to a replica. Many: replicas are lost often.",
            unit="cps",
            queries=[rate("moorage_sessions_opened_total", "service")],
        ),
        Panel(
            title="Work sent to a further replica",
            about="slow: one had not answered as soon as usual. lost: its session broke.",
            unit="cps",
            bars=True,
            queries=[rare("moorage_cycles_resent_total", "service", "cause")],
        ),
        Panel(
            title="Generations",
            about="The newest state that a replica has confirmed. Equal lines: nobody is behind.",
            unit="none",
            queries=[value("moorage_replica_generation", "service", "pod", by="max")],
        ),
        Panel(
            title="Sent to replicas",
            about="full: the whole state. delta: what changed. cycle: with a call.",
            unit="Bps",
            queries=[rate("moorage_session_sent_bytes_total", "service", "part")],
        ),
        Panel(
            title="What runs",
            about="More than one version is normal during a rollout only.",
            unit="none",
            kind="table",
            queries=[BUILD],
        ),
    ],
)

STATE = Row(
    title="The gateway's state",
    panels=[
        Panel(
            title="Cache",
            about="assumed_pods: binds that the watch has not shown yet. It has to go back to 0.",
            unit="short",
            queries=[value("moorage_cache_size", "type", by="max")],
        ),
        Panel(
            title="Since the API server's last word",
            about="Up to a minute is normal while nothing changes.",
            unit="s",
            queries=[value("moorage_cache_age_seconds", "resource", "pod", by="max")],
        ),
        Panel(
            title="Events of watches",
            about="What the gateway has to take in.",
            unit="cps",
            queries=[rate("moorage_watch_events_total", "resource", "type")],
        ),
        Panel(
            title="Watches that ended",
            about="By reason. Some are normal: the API server ends each after minutes.",
            unit="cps",
            queries=[rate("moorage_watch_restarts_total", "resource", "reason")],
        ),
        Panel(
            title="Journal",
            about="Bytes that are written each second.",
            unit="Bps",
            queries=[rate("moorage_journal_written_bytes_total", "pod")],
        ),
        Panel(
            title="Records and spans that were lost",
            about="Journal records by cause, and spans that the collector did not get.",
            unit="cps",
            queries=[
                rate("moorage_journal_dropped_total", "cause", legend="journal {{cause}}"),
                rate(
                    "moorage_spans_total",
                    "outcome",
                    where='outcome!="sent"',
                    legend="spans {{outcome}}",
                ),
            ],
        ),
    ],
)

PROCESSES = Row(
    title="Processes",
    panels=[
        Panel(
            title="CPU",
            about="Cores. A process uses one at most: its work is in one thread.",
            unit="short",
            queries=[rate("process_cpu_seconds_total", "pod")],
        ),
        Panel(
            title="Memory",
            about="RSS. docs/how-to/sizing.md has what is usual.",
            unit="bytes",
            queries=[value("process_resident_memory_bytes", "pod")],
        ),
        Panel(
            title="Time in the garbage collector",
            about="Share of the time that a process stands still.",
            unit="percentunit",
            queries=[rate("moorage_gc_pause_seconds_sum", "pod")],
        ),
        Panel(
            title="Descriptors",
            about="Open files and connections.",
            unit="short",
            queries=[value("process_open_fds", "pod")],
        ),
        Panel(
            title="Refused at HTTP ports",
            about="handshake at the extender's port: a caller's certificate does not fit.",
            unit="cps",
            queries=[rate("moorage_http_refused_total", "port", "reason")],
        ),
        Panel(
            title="Log lines lost",
            about="queue: too many waited. write: stderr took none. repeated: the same too often.",
            unit="cps",
            bars=True,
            queries=[rare("moorage_log_dropped_total", "cause")],
        ),
        Panel(
            title="gRPC calls that failed",
            about="A stream, as of a gateway, counts when it ends.",
            unit="cps",
            queries=[
                rate(
                    "grpc_server_handled_total",
                    "pod",
                    "grpc_method",
                    "grpc_code",
                    where='grpc_code!="OK"',
                )
            ],
        ),
        Panel(
            title="gRPC calls, p99",
            about="Of a stream it is the time that it was open.",
            unit="s",
            queries=[
                quantile(
                    0.99,
                    "grpc_server_handling_seconds",
                    "grpc_service",
                    "grpc_method",
                    legend="{{grpc_service}}/{{grpc_method}}",
                )
            ],
        ),
        Panel(
            title="Certificates",
            about="Seconds until each one expires.",
            unit="s",
            queries=[
                Query(
                    expression=(
                        "min by (identity, pod)"
                        " (moorage_tls_certificate_expiry_timestamp_seconds{$own} - time())"
                    ),
                    legend="{{identity}} {{pod}}",
                )
            ],
        ),
    ],
)

ANNOTATOR = Row(
    title="Annotator",
    panels=[
        Panel(
            title="Since its last successful round",
            about="Plugins stop believing annotations after annotationMaxAge.",
            unit="s",
            queries=[age("moorage_annotator_last_success_timestamp_seconds", "pod")],
        ),
        Panel(
            title="Nodes",
            about="unmeasured: Prometheus has nothing about them.",
            unit="short",
            queries=[value("moorage_annotator_nodes", "state")],
        ),
        Panel(
            title="Rounds and writes",
            about="Each round asks Prometheus once and writes what has changed.",
            unit="cps",
            queries=[
                rate("moorage_annotator_rounds_total", "result", legend="rounds {{result}}"),
                rate("moorage_annotator_patches_total", "result", legend="writes {{result}}"),
            ],
        ),
    ],
)

DASHBOARD = Dashboard(
    name="processes",
    title="Replicas and processes",
    about="Which processes run, what they use, and how they follow the cluster.",
    rows=[REPLICAS, STATE, PROCESSES, ANNOTATOR],
)
