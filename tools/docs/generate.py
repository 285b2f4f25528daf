"""Writes the tables and the included files of the documentation again.

`python -m tools.docs.generate`, from the root of the repository. A page marks what is written:

    <!-- table: settings gateway -->
    <!-- end -->

    <!-- include: deploy/files/kubeadm-patch.yaml -->
    <!-- end -->

After the name of a YAML file may stand one of its top-level keys: then only that part is included.
"""

import re
from pathlib import Path

from tools.docs.pages import ROOT, pages
from tools.docs.tables import TABLES

_SECTION = re.compile(r"(<!-- (table|include): (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def current(page: Path) -> str:
    """Return what a page should say."""
    return _SECTION.sub(_written, page.read_text())


def main() -> None:
    """Bring all pages up to date."""
    for page in pages():
        text = current(page)
        if text != page.read_text():
            page.write_text(text)


def _written(match: re.Match[str]) -> str:
    opening, kind, what, _, end = match.groups()
    name, _, rest = what.partition(" ")
    content = TABLES[name](rest) if kind == "table" else _included(name, rest)
    return f"{opening}\n{content}\n\n{end}"


def _included(name: str, key: str) -> str:
    text = (ROOT / name).read_text().strip("\n")
    if key:
        part = re.search(rf"^{key}:\n(?:[ #-].*\n?|\n)*", text, re.MULTILINE)
        assert part is not None, f"{name} has no {key}"
        text = part[0].strip("\n")
    language = Path(name).suffix[1:].replace("py", "python")
    return f"```{language}\n{text}\n```"


if __name__ == "__main__":
    main()
