"""Pods that do nothing bad, beside one whose plugin does something bad to its process."""
