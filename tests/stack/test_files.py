"""What processes leave on disk is for their user alone, whatever the umask."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sandbox.apiserver import ApiServer
from tools.inprocess.gateway import IN_TREE
from tools.planes.moorage import Moorage


def written(pid: int) -> Iterator[Path]:
    """Yield the files that a process has open for writing."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
            flags = re.search(r"flags:\s*(\d+)", info)
            file = link.readlink()
            if flags and int(flags[1], 8) & os.O_ACCMODE and file.is_file():
                yield file


async def test_nobody_else_may_read_what_processes_write(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "policy.yaml").write_text(IN_TREE)
    async with ApiServer() as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        moorage = Moorage(
            tmp_path,
            lambda _: tmp_path / "kubeconfig",
            environment=lambda _: {"HOME": str(home), "TMPDIR": str(home)},
        )
        before = os.umask(0)
        try:
            async with moorage.started():
                found = {file for each in moorage.programs.values() for file in written(each.pid)}
                found -= {each.log for each in moorage.programs.values()}
                marks = {file.parent for file in found if file.parent.name.startswith("moorage-")}
                found |= {*home.rglob("*")} | marks
                modes = {path: path.stat().st_mode & 0o077 for path in found}
        finally:
            os.umask(before)
    assert marks, "filter and scorer keep marks of what runs"
    assert not any(modes.values()), modes
