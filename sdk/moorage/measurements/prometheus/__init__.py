"""Measurements from Prometheus: queries, polling, and what the answers say of each node."""
