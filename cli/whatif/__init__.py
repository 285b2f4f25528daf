"""Decides again, in a copy of a cluster: `moorage simulate`."""
