import asyncio
import os
from pathlib import Path
from typing import Any

from moorage_host.rpc.serve import ServerSettings

ROOT = Path(__file__).parents[3]
FREE: dict[str, Any] = {"host": "127.0.0.1", "admin_host": "127.0.0.1", "port": 0, "admin_port": 0}


def settings(**changes: Any) -> ServerSettings:
    return ServerSettings(**{**FREE, "shutdown_delay": 0.0, **changes})


async def run(*command: str) -> asyncio.subprocess.Process:
    path = os.pathsep.join((str(ROOT), str(ROOT / "sdk")))
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def tiny_options(*options: str) -> list[str]:
    return [*(f"--{name.replace('_', '-')}={value}" for name, value in FREE.items()), *options]
