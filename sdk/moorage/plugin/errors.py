"""A plugin's method that returned something that it may not."""

import inspect
from collections.abc import Callable


class WrongAnswerError(Exception):
    """A method returned something that it may not; the message names the method's line."""

    def __init__(self, method: Callable[..., object], problem: str) -> None:
        code = inspect.unwrap(method).__code__
        super().__init__(f"{code.co_name} {problem} ({code.co_filename}:{code.co_firstlineno})")


class WrongTypeError(WrongAnswerError):
    """A method returned a value of another type than its signature has."""

    def __init__(self, method: Callable[..., object], value: object, expected: str) -> None:
        super().__init__(method, f"must return {expected}, not {type(value).__name__}")
