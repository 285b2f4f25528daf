"""The navigation of the site: the links of each index page, by its headings, in their order.

And which pages the search leaves out.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx

_FOR_CONTRIBUTORS = re.compile(r"docs/adr/|docs/reference/protos$")
"""Pages whose text users do not search."""

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^):]+)\.md\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _add_contents)
    app.connect("doctree-read", _leave_out_of_search)
    return {"parallel_read_safe": True}


def _add_contents(_: Sphinx, docname: str, source: list[str]) -> None:
    if PurePosixPath(docname).name == "index":
        source[0] += "".join(_toctrees(_FENCE.sub("", source[0])))


def _leave_out_of_search(app: Sphinx, _: nodes.document) -> None:
    docname = app.env.docname
    if _FOR_CONTRIBUTORS.match(docname):
        app.env.metadata[docname]["no-search"] = ""


def _toctrees(text: str) -> Iterator[str]:
    before, *parts = _HEADING.split(text)
    sections = [*zip(parts[::2], parts[1::2], strict=True)] or [("", before)]
    for caption, part in sections:
        if pages := list(dict.fromkeys(_LINK.findall(part))):
            yield "\n\n```{toctree}\n:hidden:\n"
            yield f":caption: {caption}\n" if caption else ""
            yield "\n" + "\n".join(pages) + "\n```\n"
