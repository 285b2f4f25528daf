"""`moorage annotate`: writes measurements of Prometheus into annotations of nodes."""
