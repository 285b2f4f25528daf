"""Takes safeguards out of a copy of the tree, to show that the campaign and the model notice."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.planes.embedded import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replaces a text that a file has exactly once."""

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Change the file below *root*.

        Raises:
            LookupError: The text is not there once.
        """
        path = root / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise LookupError(f"{self.file} has {text.count(self.old)} times: {self.old}")
        path.write_text(text.replace(self.old, self.new))


def run_without(
    edits: Iterable[Edit], module: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of a copy of the tree that is edited."""
    with tempfile.TemporaryDirectory(prefix="moorage-mutation-") as directory:
        root = Path(directory) / "moorage"
        _copy_tree(root)
        for edit in edits:
            edit.apply(root)
        return subprocess.run(
            [sys.executable, "-m", module, *options],
            cwd=root,
            env={**os.environ, "PYTHONPATH": f"{root}:{root / 'sdk'}"},
            capture_output=True,
            text=True,
            check=False,
        )


def _copy_tree(root: Path) -> None:
    """Copy what git knows of the tree, as it is now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file() and not name.startswith("docs/"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
