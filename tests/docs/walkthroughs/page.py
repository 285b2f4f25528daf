"""The steps of pages that are run from top to bottom: commands, output, files, Ctrl-C."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from tools.docs.pages import DOCS

TUTORIAL = DOCS / "tutorial" / "first-plugin.md"
EXERCISES = DOCS / "how-to" / "exercises.md"

PODS = "10. The same pod again"
"""The section of the tutorial that needs nodes with kubelets; see tests/e2e/renderings."""

Kind = Literal["command", "program", "output", "screen", "file", "stop"]

_PROGRAMS = ("moorage up ", "kube-scheduler ")
_PART = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARIES = re.compile(r"(\.\.\.|\d+(?:\.\d+)?(?= ?s\b)|[ \t]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that the reader does or sees.

    Attributes:
        section: The heading that it is below.
        kind: A command of the second terminal; a program that stays; what the command prints; what
            the first terminal shows; a file to write; Ctrl-C in the first terminal.
        text: The block.
        page: The page.
        line: Where it is in the page.
    """

    section: str
    kind: Kind
    text: str
    page: Path
    line: int

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def file(self) -> str:
        """The name of a file, which its first line has."""
        name = self.text.partition("\n")[0].removeprefix("# ")
        assert PurePath(name).suffix in (".py", ".yaml"), f"{self}: {name}"
        return name


def steps(page: Path) -> list[Step]:
    """Return all steps of a page in order."""
    text = page.read_text()
    found: list[Step] = []
    section, end = "", 0
    for match in _PART.finditer(text):
        prose = text[end : match.start()]
        line = text.count("\n", 0, match.start()) + 1
        if re.search(r"Stop the cluster with Ctrl-C\.", prose):
            found.append(Step(section=section, kind="stop", text="", page=page, line=line))
        section = (re.findall(r"^## (.+)$", prose, re.M) or [section])[-1]
        kind = _kind(match[1], match[2], prose, found)
        found.append(Step(section=section, kind=kind, text=match[2], page=page, line=line))
        end = match.end()
    return found


def pattern(text: str) -> re.Pattern[str]:
    """Return what output must match to be as shown: `...` is anything, times and widths vary."""
    shown = text.rstrip()
    begun = shown.removesuffix("\n...")
    rest = "" if begun == shown else r"(?:\n.*)*"
    return re.compile("".join(_lines(begun)).removesuffix("\n") + rest, re.MULTILINE)


def _lines(text: str) -> Iterator[str]:
    for line in filter(None, map(str.strip, text.splitlines())):
        if line == "...":
            yield r"(?:.*\n)*?"
        else:
            fixed, *others = _VARIES.split(line)
            pairs = zip(others[::2], others[1::2], strict=True)
            parts = (_varying(varies) + re.escape(text) for varies, text in pairs)
            yield f"^{re.escape(fixed)}{''.join(parts)}[ \\t]*$\n"


def _varying(text: str) -> str:
    if text.isspace():
        return r"[ \t]+"
    return ".*" if text == "..." else r"[\d.]+"


def _kind(language: str, text: str, prose: str, before: list[Step]) -> Kind:
    match language:
        case "sh":
            return "program" if text.startswith(_PROGRAMS) else "command"
        case "text":
            of_program = before[-1].kind == "program"
            return "screen" if of_program or "first terminal" in prose else "output"
        case _:
            return "file"
