"""The dashboard of scheduling cycles and plugins: what takes time, and what has an effect."""

from tools.monitoring.dashboards.model import Dashboard, Panel, Query, Row
from tools.monitoring.dashboards.parts import age, quantile, quantiles, rate, share, value

MEAN_NODES = (
    "sum by (verb, direction) (rate(moorage_extender_nodes_sum{$own}[$__rate_interval]))"
    " / sum by (verb, direction) (rate(moorage_extender_nodes_count{$own}[$__rate_interval]))"
)

CYCLES = Row(
    title="Cycles",
    panels=[
        Panel(
            title="Cycle",
            about="From kube-scheduler's filter call to the last score. Dots lead to decisions.",
            unit="s",
            queries=quantiles("moorage_scheduling_cycle_seconds"),
        ),
        Panel(
            title="Phases in the replicas",
            about="Cycles that were answered from the cache are not among them.",
            unit="s",
            queries=[
                quantile(0.5, "moorage_cycle_duration_seconds", "phase"),
                quantile(0.99, "moorage_cycle_duration_seconds", "phase"),
            ],
        ),
        Panel(
            title="Waiting for other cycles",
            about="One kube-scheduler has one call at a time; so long waits mean several callers.",
            unit="s",
            queries=[
                quantile(0.5, "moorage_cycle_queue_seconds"),
                quantile(0.99, "moorage_cycle_queue_seconds"),
            ],
        ),
        Panel(
            title="Nodes in a call and in its answer",
            about="The mean. As many as in the cluster: kube-scheduler takes no sample.",
            unit="short",
            queries=[Query(expression=MEAN_NODES, legend="{{verb}} {{direction}}")],
        ),
        Panel(
            title="Phases answered from the cache",
            about="whole: no replica was asked. part: they were asked about some nodes only.",
            unit="cps",
            queries=[rate("moorage_cached_phases_total", "phase", "extent")],
        ),
        Panel(
            title="Phases that several replicas shared",
            about="The gateway shares nodes among replicas where that is faster.",
            unit="cps",
            queries=[rate("moorage_scattered_cycles_total", "phase")],
        ),
    ],
)

PLUGINS = Row(
    title="Plugins",
    panels=[
        Panel(
            title="Time of a plugin in a cycle, p99",
            about="At all its extension points of that phase. Dots lead to decisions.",
            unit="s",
            queries=[
                quantile(
                    0.99,
                    "moorage_plugin_execution_duration_seconds",
                    "plugin",
                    "phase",
                    legend="{{plugin}} {{phase}}",
                )
            ],
        ),
        Panel(
            title="Time of all plugins",
            about="Seconds of each second. Who is on top makes cycles long.",
            unit="percentunit",
            stacked=True,
            queries=[rate("moorage_plugin_execution_duration_seconds_sum", "plugin", "phase")],
        ),
        Panel(
            title="Plugins that fail",
            about="Cycles that went on without it. With failurePolicy Abort, calls fail instead.",
            unit="cps",
            queries=[rate("moorage_plugin_failures_total", "plugin", "phase")],
        ),
        Panel(
            title="Nodes rejected",
            about="By filter plugins, of those that kube-scheduler's own filters let pass.",
            unit="cps",
            queries=[rate("moorage_rejected_nodes_total", "plugin")],
        ),
        Panel(
            title="Score plugins without effect",
            about="Share of the cycles in which all nodes got the same score, or the pod was "
            "skipped. For long: the plugin lacks its data.",
            unit="percentunit",
            queries=[
                share(
                    "moorage_neutral_scores_total",
                    "moorage_scheduling_cycle_seconds_count",
                    "plugin",
                )
            ],
        ),
        Panel(
            title="Scores lost in rounding",
            about="Share of the cycles in which worse nodes became equal to the best. Raise "
            "scoreScale.",
            unit="percentunit",
            queries=[
                share(
                    "moorage_rounded_scores_total",
                    "moorage_scheduling_cycle_seconds_count",
                    legend="rounded",
                )
            ],
        ),
        Panel(
            title="Claims, and pods without a profile",
            about="Pods whose schedulerName has no profile pass all filters.",
            unit="cps",
            queries=[
                rate("moorage_claims_total", legend="claims"),
                rate("moorage_foreign_pods_total", legend="pods without a profile"),
            ],
        ),
        Panel(
            title="Pods tried again on a plugin's request",
            about="written: kube-scheduler was woken up for the pod.",
            unit="cps",
            queries=[rate("moorage_retried_pods_total", "plugin", "outcome")],
        ),
        Panel(
            title="Work in the background that fails",
            about="Each failure is followed by another try.",
            unit="cps",
            queries=[rate("moorage_background_failures_total", "plugin")],
        ),
    ],
)

MEASUREMENTS = Row(
    title="Measurements of plugins",
    panels=[
        Panel(
            title="Since Prometheus answered",
            about="Above the plugin's maxAge its onMissing decides.",
            unit="s",
            queries=[age("moorage_metrics_last_answer_timestamp_seconds", "source", "pod")],
        ),
        Panel(
            title="Nodes that are measured",
            about="In the latest answer. Fewer than the cluster has: see the names of nodes.",
            unit="short",
            queries=[value("moorage_metrics_nodes", "source", "pod", by="max")],
        ),
        Panel(
            title="Queries",
            about="empty: Prometheus answers, and knows no node.",
            unit="cps",
            queries=[rate("moorage_metrics_polls_total", "source", "result")],
        ),
    ],
)

PROFILE = 'profile=~"$profile"'

SHADOWS = Row(
    title="Shadows of profiles",
    panels=[
        Panel(
            title="Cycles with a shadow",
            about="By what came of it. Disagreements: moorage shadow shows the newest.",
            unit="cps",
            queries=[rate("moorage_shadow_cycles_total", "profile", "outcome", where=PROFILE)],
        ),
        Panel(
            title="Disagreements",
            about="filter: on which nodes can run the pod. winner: on the best node.",
            unit="cps",
            queries=[rate("moorage_shadow_disagreements_total", "profile", "kind", where=PROFILE)],
        ),
        Panel(
            title="Time for shadows, and cycles without",
            about="Seconds of each second, and cycles a second that were skipped, by reason.",
            unit="short",
            queries=[
                rate(
                    "moorage_shadow_seconds_total",
                    "profile",
                    where=PROFILE,
                    legend="{{profile}} time",
                ),
                rate("moorage_shadow_skipped_cycles_total", "profile", "reason", where=PROFILE),
            ],
        ),
    ],
)

DASHBOARD = Dashboard(
    name="cycles",
    title="Cycles and plugins",
    about="What takes time in a scheduling cycle, which plugins fail, and which have no effect.",
    rows=[CYCLES, PLUGINS, MEASUREMENTS, SHADOWS],
    has_profiles=True,
)
