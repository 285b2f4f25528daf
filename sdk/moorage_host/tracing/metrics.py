"""What is counted about spans, in processes with tracing or without."""

from prometheus_client import Counter

SPANS = Counter(
    "moorage_spans_total",
    "Spans of sampled traces by what became of them: sent, failed (the collector did not take "
    "them), dropped (too many waited).",
    ("outcome",),
)
