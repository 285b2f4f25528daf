"""What is wrong with a plugin, and where in its author's file."""

import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable
from itertools import count
from typing import Final, NoReturn

_LONGEST_CLASS: Final = 500
"""Lines of a class that are searched for a statement."""


class DefinitionError(TypeError):
    """A class cannot be a plugin, or its arguments; the message begins with file and line."""


class WrongAnswerError(Exception):
    """A method returned something that it may not; the message names the method's line."""

    def __init__(self, method: Callable[..., object], problem: str) -> None:
        code = inspect.unwrap(method).__code__
        place = place_of(code.co_filename, code.co_firstlineno)
        super().__init__(f"{code.co_name} {problem} ({place})")


class WrongTypeError(WrongAnswerError):
    """A method returned a value of another type than its signature has."""

    def __init__(
        self, method: Callable[..., object], value: object, expected: str, *, node: str = ""
    ) -> None:
        place = f" for node {node}" if node else ""
        super().__init__(method, f"must return {expected}, not {type(value).__name__}{place}")


def place_of(file: str, line: int | None) -> str:
    """Return "file:line"; the file without the current directory, if it is inside of that."""
    folder = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118 - for text, not for files
    shown = file.removeprefix(folder) if folder != os.sep else file
    return shown if line is None else f"{shown}:{line}"


def refuse(problem: str, method: object = None, *, statement: str = "") -> NoReturn:
    """Refuse the class that is being made.

    Args:
        problem: What is wrong, beginning with the name of the class.
        method: The method that is wrong; its line is shown.
        statement: A regular expression; the line of the class that it matches is shown. By default
            that of the class statement.

    Raises:
        DefinitionError: Always.
    """
    code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
    at_method = code and place_of(code.co_filename, code.co_firstlineno)
    raise DefinitionError(f"{at_method or _place_in_class(statement)}: {problem}")


def _place_in_class(statement: str) -> str:
    """Return the place of a statement of the class that is being made, or of the class."""
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    if statement:
        lines = zip(
            count(line), linecache.getlines(file)[line - 1 :][:_LONGEST_CLASS], strict=False
        )
        line = next((number for number, text in lines if re.match(statement, text)), line)
    return place_of(file, line)
