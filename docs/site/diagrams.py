"""Mermaid's diagrams as SVG, drawn when the site is built; site.css inverts them on dark pages."""

import re
from hashlib import sha256
from typing import ClassVar

import mermaidx
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

READABLE = 600
"""The width in pixels up to which a diagram can be read when a phone shrinks it."""


class Mermaid(SphinxDirective):
    """A fenced block in the language `mermaid`."""

    has_content: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        """Return the diagram."""
        source = "\n".join(self.content)
        svg = mermaidx.render(source).svg()
        # Styles and markers of a diagram name its id, which is the same for all.
        unique = svg.replace("my-svg", f"diagram-{sha256(source.encode()).hexdigest()[:12]}")
        size = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+)', svg)
        wide = " wide" if size and float(size[1]) > READABLE else ""
        return [nodes.raw("", f'<div class="diagram{wide}">{unique}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True}
