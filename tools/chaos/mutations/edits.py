"""Changes a copy of the tree; used by the campaign's mutations and by the model's."""

import shutil
import subprocess
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


def copy_tree(root: Path) -> None:
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
