"""The dashboard for whoever is on call: is anything wrong, and where to look next."""

from tools.monitoring.dashboards.model import Dashboard, Panel, Query, Row
from tools.monitoring.dashboards.parts import quantile, rare, rate, value

LIFE_LEFT = (
    "min((moorage_tls_certificate_expiry_timestamp_seconds{$own} - time())"
    " / (moorage_tls_certificate_expiry_timestamp_seconds{$own}"
    " - moorage_tls_certificate_start_timestamp_seconds{$own}))"
)

NOW = Row(
    title="Now",
    panels=[
        Panel(
            title="Gateways that decide",
            about="0: pods stay pending. In the sidecar layout each one counts.",
            unit="none",
            kind="stat",
            width=3,
            steps=[(None, "red"), (1, "green")],
            queries=[Query(expression="sum(moorage_leader{$own})", legend="")],
        ),
        Panel(
            title="Filters ready",
            about="Replicas that take part. 0: the gateway is not ready, pods stay pending.",
            unit="none",
            kind="stat",
            width=3,
            steps=[(None, "red"), (1, "green")],
            queries=[value("moorage_replicas_ready", by="max", where='service="filter"')],
        ),
        Panel(
            title="Scorers ready",
            about="Replicas that take part. 0: pods are placed without Moorage's scores.",
            unit="none",
            kind="stat",
            width=3,
            steps=[(None, "red"), (1, "green")],
            queries=[value("moorage_replicas_ready", by="max", where='service="scorer"')],
        ),
        Panel(
            title="Calls that fail",
            about="Share of the filter, prioritize and preempt calls. Binds have a dashboard.",
            unit="percentunit",
            kind="stat",
            width=3,
            steps=[(None, "green"), (0.01, "yellow"), (0.05, "red")],
            queries=[
                Query(
                    expression=(
                        "sum(rate(moorage_extender_requests_total"
                        '{$own,verb!="bind",result!="ok"}[$__rate_interval]))'
                        " / sum(rate(moorage_extender_requests_total"
                        '{$own,verb!="bind"}[$__rate_interval]))'
                    ),
                    legend="",
                )
            ],
        ),
        Panel(
            title="Oldest state",
            about="Since the API server's last word about nodes or pods. Up to a minute is normal.",
            unit="s",
            kind="stat",
            width=3,
            steps=[(None, "green"), (70, "yellow"), (90, "red")],
            queries=[value("moorage_cache_age_seconds", by="max", where='resource=~"nodes|pods"')],
        ),
        Panel(
            title="Certificate's life left",
            about="Of the one with the least. Below a third a renewal is overdue.",
            unit="percentunit",
            kind="stat",
            width=3,
            steps=[(None, "red"), (0.1, "yellow"), (0.33, "green")],
            queries=[Query(expression=LIFE_LEFT, legend="")],
        ),
        Panel(
            title="Policy file",
            about="Refused: the policy before stays active, and a restart would find none.",
            unit="none",
            kind="stat",
            width=3,
            steps=[(None, "green"), (1, "red")],
            words={"0": "active", "1": "refused"},
            queries=[value("moorage_policy_file_refused", by="max")],
        ),
        Panel(
            title="Versions",
            about="That run side by side. More than one is normal during a rollout only.",
            unit="none",
            kind="stat",
            width=3,
            steps=[(None, "green"), (2, "yellow")],
            queries=[
                Query(expression="count(count by (version) (moorage_build_info{$own}))", legend="")
            ],
        ),
    ],
)

CALLS = Row(
    title="What kube-scheduler gets",
    panels=[
        Panel(
            title="Calls",
            about="One filter call for each attempt of a pod. None: kube-scheduler does not ask.",
            unit="reqps",
            queries=[rate("moorage_extender_requests_total", "verb")],
        ),
        Panel(
            title="Calls that did not end well",
            about="failed: the pod's event has the message. cancelled: kube-scheduler hung up.",
            unit="reqps",
            bars=True,
            queries=[
                rare("moorage_extender_requests_total", "verb", "result", where='result!="ok"')
            ],
        ),
        Panel(
            title="Time of a call, p99",
            about="The gateway gives up at 80 % of the HTTP timeout.",
            unit="s",
            queries=[
                quantile(
                    0.99, "moorage_extender_request_duration_seconds", "verb", legend="{{verb}}"
                ),
                value("moorage_extender_http_timeout_seconds", by="max", legend="HTTP timeout"),
            ],
        ),
        Panel(
            title="Cycle, p50 and p99",
            about="From kube-scheduler's filter call to the last score. Dots lead to decisions.",
            unit="s",
            queries=[
                quantile(0.5, "moorage_scheduling_cycle_seconds"),
                quantile(0.99, "moorage_scheduling_cycle_seconds"),
            ],
        ),
        Panel(
            title="Pods placed without scores",
            about="Prioritize calls that failed: kube-scheduler goes on, and logs nothing.",
            unit="cps",
            bars=True,
            queries=[rare("moorage_extender_hidden_failures_total", "result")],
        ),
        Panel(
            title="Binds",
            about="By the binder. Empty where kube-scheduler binds.",
            unit="cps",
            queries=[rate("moorage_binds_total", "outcome")],
        ),
    ],
)

BEHIND = Row(
    title="Behind it",
    panels=[
        Panel(
            title="Plugins that fail",
            about="Cycles that went on without it. With failurePolicy Abort, calls fail instead.",
            unit="cps",
            queries=[rate("moorage_plugin_failures_total", "plugin", "phase")],
        ),
        Panel(
            title="Cluster",
            about="What the gateway that decides has in its cache.",
            unit="short",
            queries=[
                value("moorage_cache_size", "type", by="max", where='type=~"nodes|pods|claims"')
            ],
        ),
        Panel(
            title="Alerts",
            about="Of the chart's rules. Each has a runbook: docs/reference/runbooks.md.",
            unit="none",
            kind="table",
            queries=[
                Query(
                    expression=(
                        "sum by (alertname, severity, alertstate, namespace)"
                        ' (ALERTS{alertname=~"Moorage.*",namespace=~"$namespace|"})'
                    ),
                    legend="{{alertname}}",
                )
            ],
        ),
    ],
)

DASHBOARD = Dashboard(
    name="overview",
    title="Overview",
    about="Whether pods are placed as the policy has it, and where to look if not.",
    rows=[NOW, CALLS, BEHIND],
)
