"""Writes scheduling decisions to the Kubernetes API."""
