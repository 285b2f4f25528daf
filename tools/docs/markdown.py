"""Writes Markdown."""

from collections.abc import Iterable, Sequence

Row = Sequence[str]


def table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in x) for x in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
