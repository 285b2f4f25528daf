"""Measurements from Prometheus: queries, polling, and the values of each node in the answers."""
