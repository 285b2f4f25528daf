"""Faults on demand: failures, delays and lost answers that tests inject, in Python or over HTTP."""
