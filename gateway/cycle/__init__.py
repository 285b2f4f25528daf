"""Scheduling cycles: one at a time, filter and then score."""
