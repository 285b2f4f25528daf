"""The dashboard of binds, and of the terms that fence them."""

from tools.monitoring.dashboards.model import Dashboard, Panel, Row
from tools.monitoring.dashboards.parts import quantile, quantiles, rate, value

BINDS = Row(
    title="Binds",
    panels=[
        Panel(
            title="Binds by outcome",
            about="All but bound and already-bound left the pod without a node.",
            unit="cps",
            queries=[rate("moorage_binds_total", "outcome")],
        ),
        Panel(
            title="Time of a bind",
            about="With waiting for other pods and for the API server.",
            unit="s",
            queries=quantiles("moorage_bind_seconds"),
        ),
        Panel(
            title="Under way",
            about="At its limit (--concurrency and --max-waiting) the binder refuses more.",
            unit="short",
            queries=[
                value("moorage_binds_running", "pod", legend="{{pod}} running"),
                value("moorage_permit_waiting", "pod", legend="{{pod}} wait for other pods"),
            ],
        ),
        Panel(
            title="Requests sent again",
            about="By cause: timeout, unreachable, or the API server's status.",
            unit="cps",
            queries=[rate("moorage_bind_retries_total", "cause")],
        ),
        Panel(
            title="Checks at the bind",
            about="spared: nothing had changed. rejected: another pod was faster, the rule held.",
            unit="cps",
            queries=[rate("moorage_bind_checks_total", "outcome")],
        ),
        Panel(
            title="Unknown outcomes that were settled",
            about="Binds whose outcome the gateway had to ask the API server for.",
            unit="cps",
            queries=[rate("moorage_settled_binds_total", "outcome")],
        ),
    ],
)

PLUGINS = Row(
    title="Bind plugins",
    panels=[
        Panel(
            title="Time of a plugin, p99",
            about="At one extension point.",
            unit="s",
            queries=[
                quantile(
                    0.99,
                    "moorage_bind_plugin_seconds",
                    "plugin",
                    "point",
                    legend="{{plugin}} {{point}}",
                )
            ],
        ),
        Panel(
            title="Answers",
            about="wait and refused are decisions, failed is a mistake.",
            unit="cps",
            queries=[rate("moorage_bind_plugin_results_total", "plugin", "point", "result")],
        ),
        Panel(
            title="Waiting for other pods, p99",
            about="By how it ended. timeout: a group did not get complete.",
            unit="s",
            queries=[quantile(0.99, "moorage_permit_wait_seconds", "end", legend="{{end}}")],
        ),
    ],
)

TERMS = Row(
    title="Terms",
    panels=[
        Panel(
            title="Who decides",
            about="1 at the gateway that decides. Without a Lease it is 1 at each.",
            unit="none",
            queries=[value("moorage_leader", "pod")],
        ),
        Panel(
            title="Terms that began",
            about="Many without a reason: two gateways are called in turn.",
            unit="cps",
            queries=[rate("moorage_leader_transitions_total", "pod")],
        ),
        Panel(
            title="Epochs",
            about="The gateway's newest term, and the highest epoch that each binder has seen.",
            unit="none",
            queries=[
                value("moorage_term_epoch", "pod", by="max"),
                value("moorage_epoch", "pod", by="max"),
            ],
        ),
        Panel(
            title="Start of a term, and barriers, p99",
            about="Calls wait so long when a gateway starts or takes over.",
            unit="s",
            queries=[
                quantile(0.99, "moorage_term_start_seconds", legend="start of a term"),
                quantile(0.99, "moorage_barrier_seconds", "result", legend="barrier {{result}}"),
            ],
        ),
        Panel(
            title="Binds of earlier terms that were refused",
            about="arrival: refused at once. waiting: given up before they were sent.",
            unit="cps",
            queries=[rate("moorage_binds_fenced_total", "stage")],
        ),
        Panel(
            title="Events",
            about="Kubernetes Events that the binder writes.",
            unit="cps",
            queries=[rate("moorage_events_total", "result")],
        ),
    ],
)

DASHBOARD = Dashboard(
    name="binding",
    title="Binding",
    about="How binds end, what delays them, and which gateway may ask for them.",
    rows=[BINDS, PLUGINS, TERMS],
)
