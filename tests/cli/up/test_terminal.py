"""`moorage up` on a real terminal that is 40 columns wide."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path

import yaml

from tests.cli.support import MOORAGE, PATIENCE, pod

COLUMNS = 40
NAME = "a-pod-whose-name-is-nearly-too-long"
UNBROKEN = ("export KUBECONFIG=", "Logs: ")
"""Lines to copy, which are never broken."""


async def test_names_are_whole_at_40_columns_and_every_line_fits(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pod(f"{NAME}-{i}") for i in range(3)))
    code, shown = await on_terminal(tmp_path, "up", "--once", "--nodes=2", "--pods=pods.yaml")
    assert code == 0
    for i in range(3):
        row = shown.index(f"default/{NAME}-{i}")
        assert re.fullmatch(r"  node-000[01]", shown[row + 1])
        assert shown[row + 2].startswith("  ")
    assert "3 of 3 pods bound, 0 pending" in shown
    own = [line for line in shown if not line.startswith((f"default/{NAME}", *UNBROKEN))]
    assert [line for line in own if len(line) > COLUMNS] == []


async def on_terminal(home: Path, *arguments: str) -> tuple[int, list[str]]:
    """Run `moorage` on a terminal; return its exit code and the lines as they were left."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    process = await asyncio.create_subprocess_exec(
        str(MOORAGE),
        *arguments,
        cwd=home,
        env=environment | {"TERM": "xterm", "TMPDIR": str(home), "XDG_RUNTIME_DIR": str(home)},
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)
    async with asyncio.timeout(PATIENCE):
        written = await asyncio.to_thread(_everything, terminal)
        return await process.wait(), _lines(written)


def _everything(terminal: int) -> str:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # the last process has closed the other end
            os.close(terminal)
            return b"".join(parts).decode()
        parts.append(part)


def _lines(written: str) -> list[str]:
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    # A carriage return writes over the line: what stands after the last one is left.
    return [line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n")]
