"""The annotator: writes measurements of Prometheus into annotations of nodes."""
