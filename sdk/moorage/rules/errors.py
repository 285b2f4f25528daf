"""What goes wrong with a selector; a module of its own because both parsers raise it."""


class SelectorError(ValueError):
    """A selector cannot be understood; the message names the place and what was expected there."""

    def __init__(self, kind: str, text: str, position: int, problem: str) -> None:
        super().__init__(f"{kind} selector {text!r}, character {position + 1}: {problem}")
        self.position = position
        """Where the mistake starts, counted in characters from 0."""
