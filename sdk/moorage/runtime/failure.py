"""Says what went wrong in a plugin, and on which line of whose file."""

import inspect
import traceback

from moorage.plugin import Plugin, WrongTypeError
from moorage.runtime.alarm import BudgetExceededError


def problem_of(error: BaseException, plugin: Plugin, budget_seconds: float) -> str:
    """Describe *error* in one line; equal causes give equal texts."""
    if isinstance(error, WrongTypeError):
        return str(error)
    where = _where(error, plugin)
    if isinstance(error, BudgetExceededError | TimeoutError):
        return f"it took longer than its time budget of {budget_seconds:g} s{where}"
    return f"{type(error).__name__}: {error}{where}"


def _where(error: BaseException, plugin: Plugin) -> str:
    """Return the innermost line in the plugin's own file, or the innermost line."""
    try:
        file = inspect.getfile(type(plugin))
    except TypeError:  # the class was not defined in a file
        file = ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file]
    chosen = own or frames
    return f" ({chosen[-1].filename}:{chosen[-1].lineno})" if chosen else ""
