"""Changes of files are noticed, however they come about."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.up.reloading import changes
from tests.cli.support import PATIENCE


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.up.reloading.LOOK_SECONDS", 0.01)


class Watched:
    def __init__(self, *paths: Path) -> None:
        self._changes: AsyncIterator[list[Path]] = changes(paths)
        self._next = asyncio.ensure_future(anext(self._changes))

    async def next(self) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            found = await self._next
        self._next = asyncio.ensure_future(anext(self._changes))
        return [path.name for path in found]

    async def begin(self) -> None:
        await asyncio.sleep(0)  # the first look is before the first change

    def end(self) -> None:
        self._next.cancel()


async def test_a_file_that_is_written_replaced_or_gone_has_changed(tmp_path: Path) -> None:
    file, other = tmp_path / "a.py", tmp_path / "b.py"
    file.write_text("1")
    watched = Watched(file)
    await watched.begin()
    other.write_text("2")  # is not watched
    file.write_text("22")
    assert await watched.next() == ["a.py"]
    other.replace(file)  # as editors do that write a copy first
    assert await watched.next() == ["a.py"]
    file.unlink()
    assert await watched.next() == ["a.py"]
    watched.end()


async def test_python_files_of_a_folder_may_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    watched = Watched(tmp_path)
    await watched.begin()
    (tmp_path / "notes.txt").write_text("no plugin")
    (tmp_path / "b.py").write_text("2")
    assert await watched.next() == ["b.py"]
    os.utime(tmp_path / "a.py", ns=(1, 1))
    (tmp_path / "b.py").unlink()
    assert await watched.next() == ["a.py", "b.py"]
    watched.end()
