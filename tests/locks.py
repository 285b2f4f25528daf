"""Reads requirements*.lock."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PIN = re.compile(r"([A-Za-z0-9._-]+)(?:\[[a-z0-9,-]+\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})(?=\s|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """A version of a package that a lock allows."""

    name: str
    version: str
    hashes: tuple[str, ...]
    place: str

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.version


def locked(lock: Path) -> Iterator[Locked]:
    """Give each requirement of a lock; one without an exact version is a ValueError."""
    text = lock.read_text().replace("\\\n", " ")
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if (pin := _PIN.match(line)) is None:
            raise ValueError(f"{lock.name}: {line[:80]!r} is no exact version: run `make lock`")
        yield Locked(
            name=pin[1], version=pin[2], hashes=tuple(_HASH.findall(line)), place=lock.name
        )
