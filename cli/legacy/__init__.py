"""The Policy of kube-scheduler before 1.23, and what it is today."""

from cli.legacy.convert import Conversion, convert, write

__all__ = ["Conversion", "convert", "write"]
