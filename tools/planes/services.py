"""Moorage's processes as programs: what is the same wherever they are started."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tools.planes.embedded import answers
from tools.planes.programs import Program

HOST = "127.0.0.1"


def service(
    name: str,
    options: Sequence[str],
    *,
    folder: Path,
    admin: int,
    tls: Path | None = None,
    probe: str = "livez",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Program:
    """Return one of the processes.

    Args:
        name: What it is called: its kind, as in "gateway", or a kind and a number.
        options: Its options beside those that all have.
        folder: Where its log goes.
        admin: Its admin port.
        tls: The folder of its certificate; without it everything is plain text.
        probe: What its admin server answers when it can be used.
        environment: Variables for its start; it is not forked with any.
    """
    kind, scheme = name.partition("-")[0], "https" if tls else "http"
    common = [
        *(f"--admin-host={HOST}", f"--admin-port={admin}", "--log-format=text"),
        *("--shutdown-delay=0s", "--shutdown-grace=2s", *([f"--tls={tls}"] if tls else [])),
    ]
    return Program(
        name=name,
        module="gateway" if kind == "gateway" else f"services.{kind}",
        command=[*common, *options],
        environment=dict(environment),
        log=folder / f"{name}.log",
        ready=lambda: answers(f"{scheme}://{HOST}:{admin}/{probe}", ssl=False),
    )
