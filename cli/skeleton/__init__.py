"""The skeleton of a plugin."""

from cli.skeleton.texts import Form, Kind
from cli.skeleton.writing import write_skeleton

__all__ = ["Form", "Kind", "write_skeleton"]
