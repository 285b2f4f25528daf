"""Completes the metadata of the wheel: the build reads it, as pyproject.toml has it do.

A release sets MOORAGE_HOME to the address of the repository's page. Then the distribution links to
it, and relative links of the README lead to the files of that version. Without it there is none.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

HOME = "MOORAGE_HOME"
"""The variable of the environment, such as https://git.example.org/moorage/moorage."""

_RELATIVE = re.compile(r"(\]\()(?!https?://|#)([^)\s]+\))")


class Completed(MetadataHookInterface):
    """Sets `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Complete the metadata in place."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        home = os.environ.get(HOME, "").rstrip("/")
        if home:
            files = f"{home}/blob/v{metadata['version']}/"
            text = _RELATIVE.sub(rf"\g<1>{files}\g<2>", text)
            metadata["urls"] = {
                "Homepage": home,
                "Documentation": f"{files}docs/index.md",
                "Changelog": f"{files}CHANGELOG.md",
                "Issues": f"{home}/issues",
                "Security": f"{files}SECURITY.md",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
