"""Writes deploy/kustomize again: `python -m tests.deploy.generate`, or `make manifests`."""

import shutil
from pathlib import Path, PurePosixPath

from tests.deploy.renderings.folders import Files, base, component, overlay
from tests.deploy.renderings.layouts import KUSTOMIZE, OPTIONS, components, layouts
from tests.deploy.renderings.rendering import render_chart
from tests.e2e.build import find


def generated(helm: Path) -> Files:
    """Return the files of deploy/kustomize by their path in it."""
    plain = render_chart(helm, {})
    before = {document.key: document for document in plain}
    files = _under("base", base(plain))
    for name, values in OPTIONS.items():
        files |= _under(f"components/{name}", component(render_chart(helm, values), before))
    for name, values in layouts().items():
        files |= _under(f"overlays/{name}", overlay(components(values)))
    return files


def main() -> None:
    """Replace deploy/kustomize."""
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
