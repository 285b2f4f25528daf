"""What `moorage annotate` does: Prometheus' measurements become annotations of the nodes."""
