"""Writes chart and manifests of a release: `python -m tools.release.chart FOLDER`.

They name the image by digest, which is known once the image is pushed: until then REGISTRY and
DIGEST stand there, which the release workflow replaces. What the chart says of itself for Artifact
Hub comes from MOORAGE_HOME, the address of the repository's page, and from the changelog.
"""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from deploy.metadata import HOME
from tools.manifests.rendering import CHART, INSTALL
from tools.release.notes import ReleaseError, notes_of
from tools.release.released import ROOT

REGISTRY, DIGEST = "@REGISTRY@", "@DIGEST@"
"""What stands for the registry's address, and for the digest of the image, sha256:..."""

IMAGE = f"{REGISTRY}/moorage@{DIGEST}"
PLATFORMS = ["linux/amd64", "linux/arm64"]

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_VALUES = {
    "  repository: moorage": f"  repository: {REGISTRY}/moorage",
    '  digest: ""': f"  digest: {DIGEST}",
}
_ICON = "gateway/inspector/static/icon.svg"


def about(version: str, home: str, notes: str) -> dict[str, Any]:
    """Return what a release adds to Chart.yaml."""
    files = f"{home}/blob/v{version}"
    listed = {
        "images": [{"name": "moorage", "image": IMAGE, "platforms": PLATFORMS}],
        "changes": changes(notes),
        "links": [
            {"name": "Documentation", "url": f"{files}/docs/index.md"},
            {"name": "Changelog", "url": f"{files}/CHANGELOG.md"},
        ],
    }
    plain = {f"artifacthub.io/{name}": _yaml(each) for name, each in listed.items()}
    return {
        "home": home,
        "sources": [home],
        "icon": f"{home}/raw/v{version}/{_ICON}",
        "annotations": plain | {"artifacthub.io/prerelease": str("-" in version).lower()},
    }


def changes(notes: str) -> list[dict[str, str]]:
    """Return the entries of a version in the changelog, each with its kind, as plain text."""
    found = []
    for section in re.split(r"^### ", notes, flags=re.MULTILINE)[1:]:
        kind, _, text = section.partition("\n")
        for entry in re.split(r"^- ", text, flags=re.MULTILINE)[1:]:
            plain = _LINK.sub(r"\1", entry).replace("**", "").replace("`", "")
            found.append({"kind": kind.strip().lower(), "description": " ".join(plain.split())})
    return found


def write(folder: Path, version: str, home: str, notes: str) -> None:
    """Write `chart/moorage`, and `install` with a file for each layout, into a folder.

    Raises:
        ReleaseError: The chart has another version, or its values another form.
    """
    chart = shutil.copytree(CHART, folder / "chart" / CHART.name)
    content = yaml.safe_load((chart / "Chart.yaml").read_text())
    if {content["version"], content["appVersion"]} != {version}:
        raise ReleaseError(f"Chart.yaml has {content['version']}: set both versions to {version}")
    added = about(version, home, notes)
    annotations = content["annotations"] | added["annotations"]
    (chart / "Chart.yaml").write_text(_yaml(content | added | {"annotations": annotations}))
    values = (chart / "values.yaml").read_text()
    for old, new in _VALUES.items():
        values, count = re.subn(f"^{re.escape(old)}$", new, values, flags=re.MULTILINE)
        if count != 1:
            raise ReleaseError(f"values.yaml has {count} lines `{old}`, and must have one")
    (chart / "values.yaml").write_text(values)
    (folder / "install").mkdir()
    for file in INSTALL.glob("*.yaml"):
        text = re.sub(r"image: moorage:.*", f"image: {IMAGE}", file.read_text())
        (folder / "install" / file.name).write_text(text)


def _yaml(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)


def main() -> int:
    """Write them into the folder that is named."""
    if len(sys.argv) != 2:
        print("usage: python -m tools.release.chart FOLDER", file=sys.stderr)
        return 2
    home = os.environ.get(HOME, "").rstrip("/")
    if not home:
        print(f"the chart has to say where its sources are: set {HOME}", file=sys.stderr)
        return 1
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    try:
        write(Path(sys.argv[1]), version, home, notes_of(version))
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
