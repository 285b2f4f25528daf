"""What Prometheus sources count, where prometheus_client is installed; elsewhere nothing.

`source` names what is measured. Labels never hold names of nodes.
"""

from types import ModuleType
from typing import Final

prometheus: ModuleType | None
try:
    import prometheus_client as prometheus
except ImportError:  # the plugin API does not need it
    prometheus = None

_LABELS: Final = ("source", "address")

if prometheus is not None:
    POLLS = prometheus.Counter(
        "moorage_metrics_polls_total",
        "Queries of plugins to Prometheus, by result: ok, empty or failed.",
        (*_LABELS, "result"),
    )
    LAST_ANSWER = prometheus.Gauge(
        "moorage_metrics_last_answer_timestamp_seconds",
        "When Prometheus last answered a plugin's query; 0: not yet.",
        _LABELS,
    )
    NODES = prometheus.Gauge(
        "moorage_metrics_nodes", "Nodes in the latest answer of Prometheus.", _LABELS
    )


def started(source: str, address: str) -> None:
    """Show that there is a source."""
    if prometheus is not None:
        LAST_ANSWER.labels(source, address)
        NODES.labels(source, address)


def answered(source: str, address: str, nodes: int) -> None:
    """Count an answer with so many *nodes*."""
    if prometheus is not None:
        POLLS.labels(source, address, "ok" if nodes else "empty").inc()
        LAST_ANSWER.labels(source, address).set_to_current_time()
        NODES.labels(source, address).set(nodes)


def failed(source: str, address: str) -> None:
    """Count a query without an answer."""
    if prometheus is not None:
        POLLS.labels(source, address, "failed").inc()
