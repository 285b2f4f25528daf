"""Breaks processes and links under load; `make chaos`."""
