"""Reads an image from an OCI layout."""

import json
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any


class Layout:
    """One image."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def digest(self) -> str:
        """The digest of the image's manifest."""
        (entry,) = json.loads((self._folder / "index.json").read_text())["manifests"]
        return str(entry["digest"])

    @cached_property
    def manifest(self) -> Any:
        """Which blobs the image has."""
        return json.loads(self._blob(self.digest).read_text())

    @cached_property
    def config(self) -> Any:
        """User, environment, command and labels."""
        return json.loads(self._blob(self.manifest["config"]["digest"]).read_text())["config"]

    @property
    def layers(self) -> list[str]:
        """The digests of the layers."""
        return [layer["digest"] for layer in self.manifest["layers"]]

    @property
    def compressed(self) -> int:
        """The bytes of the layers as a registry keeps them."""
        return sum(layer["size"] for layer in self.manifest["layers"])

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(member.size for member in self.members())

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Give every file, folder and link of every layer."""
        for layer in self.layers:
            with tarfile.open(self._blob(layer)) as archive:
                yield from archive

    def largest(self, count: int) -> list[tuple[str, int]]:
        """Return the largest packages and folders, with their bytes."""
        sizes: Counter[str] = Counter()
        for member in self.members():
            parts = PurePosixPath(member.name).parts
            depth = 5 if parts[3:4] == ("site-packages",) else 3
            sizes["/".join(parts[:depth])] += member.size
        return sizes.most_common(count)

    def unpack(self, folder: Path) -> None:
        """Write the file system into a folder, with owners and modes."""
        for layer in self.layers:
            words = ("tar", "-xpf", self._blob(layer), "--numeric-owner", "-C", folder)
            subprocess.run(words, check=True)

    def _blob(self, digest: str) -> Path:
        return self._folder / "blobs" / digest.replace(":", "/")
