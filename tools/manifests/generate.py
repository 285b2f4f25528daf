"""Writes deploy/kustomize, and what the chart knows of plugins: `make manifests`."""

import shutil
from pathlib import Path, PurePosixPath

from tools.build import find
from tools.manifests.folders import Files, base, component, overlay
from tools.manifests.layouts import CHART, KUSTOMIZE, OPTIONS, UPON, components, layouts
from tools.manifests.plugins import FILE, table
from tools.manifests.rendering import render_chart


def generated(helm: Path) -> Files:
    """Return the files of deploy/kustomize by their path in it."""
    plain = render_chart(helm, {})
    files = _under("base", base(plain))
    for name, values in OPTIONS.items():
        below = render_chart(helm, OPTIONS[UPON[name]]) if name in UPON else plain
        before = {document.key: document for document in below}
        files |= _under(f"components/{name}", component(render_chart(helm, values), before))
    for name, values in layouts().items():
        files |= _under(f"overlays/{name}", overlay(components(values)))
    return files


def main() -> None:
    """Replace the files."""
    (CHART / FILE).write_text(table())
    files = generated(find("helm"))
    shutil.rmtree(KUSTOMIZE, ignore_errors=True)
    for path, text in files.items():
        file = KUSTOMIZE / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _under(folder: str, files: Files) -> Files:
    return {PurePosixPath(folder) / path: text for path, text in files.items()}


if __name__ == "__main__":
    main()
