"""The files of the documentation, what can be found in them, and how tables are written."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Row = Sequence[str]


def table(head: Row, rows: Iterable[Row]) -> str:
    first, *others = ("|" + "".join(f" {x} |" if x else " |" for x in row) for row in (head, *rows))
    return "\n".join((first, "|" + "---|" * len(head), *others))


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SKILLS = "deploy/skills/*/SKILL.md"
"""What assistants read; its commands are tested as those of other pages are."""

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INCLUDED = re.compile(r"<!-- include: .*?<!-- end -->", re.DOTALL)
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language, its text, where it begins, whether a file is included there."""

    page: Path
    line: int
    language: str
    text: str
    included: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return every page that people read."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob(SKILLS))]


def blocks(language: str) -> Iterator[Block]:
    """Yield the blocks of a language, of all pages."""
    yield from (block for block in all_blocks() if block.language == language)


def all_blocks() -> Iterator[Block]:
    """Yield the blocks of all pages, those in lists without their indentation."""
    for page in pages():
        text = page.read_text()
        included = [match.span() for match in _INCLUDED.finditer(text)]
        for match in _FENCE.finditer(text):
            yield Block(
                page=page,
                line=text.count("\n", 0, match.start()) + 1,
                language=match[2],
                text=textwrap.dedent(match[3]),
                included=any(start < match.start() < end for start, end in included),
            )


def images(page: Path) -> list[str]:
    """Return the images that a page shows."""
    return _IMAGE.findall(_FENCE.sub("", page.read_text()))


def links(page: Path) -> list[str]:
    """Return where a page links to, outside of code."""
    return _LINK.findall(_FENCE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {_anchor(heading) for heading in headings}


def _anchor(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().strip()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
