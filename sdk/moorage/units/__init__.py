"""Kubernetes quantities, Go durations and Go integers."""
