"""What goes wrong with a selector; a module of its own because both parsers raise it."""

LONGEST = 200
"""Characters of a selector that messages quote."""


class SelectorError(ValueError):
    """A selector cannot be understood; the message names the place and what was expected there."""

    def __init__(self, kind: str, text: str, position: int, problem: str) -> None:
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        super().__init__(f"{kind} selector {shown!r}, character {position + 1}: {problem}")
        self.position = position
        """Where the mistake starts, counted in characters from 0."""
