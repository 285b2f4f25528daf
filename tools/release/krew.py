"""Writes the plugin for kubectl's plugin manager: `python -m tools.release.krew FOLDER`.

It is the thin client of `cli.thin` as one file that Python runs, in an archive, and the manifest of
krew that names the archive by its hash. A release sets MOORAGE_HOME, the address of the
repository's page, and SOURCE_DATE_EPOCH; the same commit gives the same bytes.
"""

import gzip
import hashlib
import io
import os
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import yaml

from deploy.metadata import HOME
from tools.release.released import ROOT

NAME = "moorage"
PROGRAM = f"kubectl-{NAME}"

MODULES = (
    "cli/__init__.py",
    "cli/shared/__init__.py",
    "cli/shared/gateway/__init__.py",
    "cli/shared/gateway/pods.py",
    "cli/thin/__init__.py",
    "cli/thin/__main__.py",
    "cli/thin/gateway.py",
    "sdk/moorage/units/__init__.py",
    "sdk/moorage/units/printable.py",
)
"""All that is in it; the public library itself, which needs numpy, is not."""

START = "import sys\n\nfrom cli.thin.__main__ import main\n\nsys.exit(main())\n"

PACKAGE = '"""What the plugin has of the library moorage."""\n'

BEGIN = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip archive can have."""


def program() -> bytes:
    """Return the plugin: a file that Python runs."""
    made = io.BytesIO()
    made.write(b"#!/usr/bin/env python3\n")
    added = {"__main__.py": START, "moorage/__init__.py": PACKAGE}
    texts = {each.removeprefix("sdk/"): (ROOT / each).read_text() for each in MODULES}
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted((texts | added).items()):
            entry = zipfile.ZipInfo(name, BEGIN)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return made.getvalue()


def archive(time: int) -> bytes:
    """Return the archive with the plugin and the license; *time* is in seconds since 1970."""
    made = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=made, mtime=time) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, mode, content in (
            ("LICENSE", 0o644, (ROOT / "LICENSE").read_bytes()),
            (PROGRAM, 0o755, program()),
        ):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size, entry.mtime = mode, len(content), time
            tar.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def manifest(version: str, home: str, packed: bytes) -> str:
    """Return krew's manifest: one archive for each system that has Python and kubectl."""
    system = {"matchExpressions": [{"key": "os", "operator": "In", "values": ["darwin", "linux"]}]}
    platform = {
        "selector": system,
        "uri": f"{home}/releases/download/v{version}/{archive_name(version)}",
        "sha256": hashlib.sha256(packed).hexdigest(),
        "files": [{"from": "*", "to": "."}],
        "bin": PROGRAM,
    }
    content = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{version}",
            "homepage": home,
            "shortDescription": "Explain why pods are pending or placed",
            "description": (
                "Asks the gateway of Moorage, which runs scheduling rules in Python beside\n"
                "kube-scheduler, why a pod is on its node, why it has none, and what helps.\n"
            ),
            "caveats": "It needs Python 3.11 or newer as python3, and Moorage in the cluster.\n",
            "platforms": [platform],
        },
    }
    return yaml.safe_dump(content, sort_keys=False)


def archive_name(version: str) -> str:
    """Return the file name of the archive."""
    return f"{PROGRAM}-{version}.tar.gz"


def main() -> int:
    """Write archive and manifest into the folder that is named."""
    if len(sys.argv) != 2:
        print("usage: python -m tools.release.krew FOLDER", file=sys.stderr)
        return 2
    folder, home = Path(sys.argv[1]), os.environ.get(HOME, "").rstrip("/")
    if not home:
        print(f"krew has to know where the archive is: set {HOME}", file=sys.stderr)
        return 1
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    packed = archive(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / archive_name(version)).write_bytes(packed)
    (folder / f"{NAME}.yaml").write_text(manifest(version, home, packed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
