"""What the annotator counts. Labels never hold names of nodes."""

from prometheus_client import Counter, Gauge

ROUNDS = Counter(
    "moorage_annotator_rounds_total", "Rounds that ended, by result: ok or failed.", ("result",)
)

SAMPLES = Counter("moorage_annotator_samples_total", "Numbers of nodes that Prometheus gave.")

PATCHES = Counter(
    "moorage_annotator_patches_total",
    "Nodes that were to be written, by result: written, gone (deleted meanwhile) or failed.",
    ("result",),
)

NODES = Gauge(
    "moorage_annotator_nodes",
    "Nodes of the latest round, by state: measured, unmeasured, or failed to be written.",
    ("state",),
)

LAST_SUCCESS = Gauge(
    "moorage_annotator_last_success_timestamp_seconds",
    "When a round last went well; 0 if none has yet.",
)
