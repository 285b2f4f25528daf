"""Notices that files have changed, by looking at them again and again.

Editors, mounts and containers differ in the events that they cause, while looks always work and
cost nothing for a few files.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

from moorage_host.plugins.registry import is_plugin_file

LOOK_SECONDS = 0.25
"""Time between two looks. Editors write in steps: a change counts once two looks found the same."""

Marks = Mapping[Path, tuple[int, int, int]]
"""Files with time of change, size and inode."""


async def changes(paths: Sequence[Path]) -> AsyncIterator[list[Path]]:
    """Yield the files that changed, appeared or are gone, for ever.

    Args:
        paths: Python files, other files, and folders, of which the Python files count.
    """
    known = before = _marks(paths)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = _marks(paths)
        if now == before != known:
            changed = [
                path for path in known.keys() | now.keys() if known.get(path) != now.get(path)
            ]
            known = now
            yield sorted(changed)
        before = now


def _marks(paths: Sequence[Path]) -> Marks:
    found = {}
    for path in paths:
        for file in _files(path):
            try:
                stat = file.stat()
            except OSError:  # between two steps of an editor
                continue
            found[file] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return found


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from filter(is_plugin_file, path.glob("*.py"))
    else:
        yield path
