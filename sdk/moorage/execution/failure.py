"""Describes what went wrong in a plugin, with file and line."""

import inspect
import traceback

from moorage.plugin.base import Plugin
from moorage.plugin.errors import WrongAnswerError


def problem_of(error: BaseException, plugin: Plugin) -> str:
    """Describe *error* in one line; equal causes give equal texts."""
    if isinstance(error, WrongAnswerError):
        return str(error)
    return f"{type(error).__name__}: {error}{_where(error, plugin)}"


def overrun_of(error: BaseException, plugin: Plugin, budget_seconds: float) -> str:
    """Describe, in one line, where the plugin was when its time was up."""
    return f"it took longer than its time budget of {budget_seconds:g} s{_where(error, plugin)}"


def _where(error: BaseException, plugin: Plugin) -> str:
    """Return the innermost line in the plugin's own file, or the innermost line."""
    try:
        file = inspect.getfile(type(plugin))
    except TypeError:  # the class was not defined in a file
        file = ""
    # A timeout's own traceback ends in asyncio; its cause was thrown into the plugin.
    errors = [error, error.__cause__] if error.__cause__ else [error]
    frames = [frame for e in errors for frame in traceback.extract_tb(e.__traceback__)]
    own = [frame for frame in frames if frame.filename == file]
    chosen = own or frames
    return f" ({chosen[-1].filename}:{chosen[-1].lineno})" if chosen else ""
