"""Feeds mutated input to what reads it; `make fuzz`."""

from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
CURRENT, RESULT, NEW = "current", "result.json", "new"
"""The files of a worker, which its parent reads."""
