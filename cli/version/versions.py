"""Asks for versions, and shows them."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cli.shared.gateway.client import connected
from cli.shared.gateway.errors import GatewayError
from cli.shared.gateway.options import GatewayOptions
from moorage import __version__
from moorage.errors import MoorageError

UNKNOWN = "before 0.2"
"""What is shown of a process that does not report its version."""

SKEW = (
    "note: versions differ. That is meant to last as long as an update takes: services and gateway "
    "work together across one minor version."
)


class Running(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A process and its version."""

    process: str
    version: str
    python: str = ""
    revision: str = ""
    place: str = ""


def client() -> Running:
    """Return the version of this command."""
    return Running(process="moorage", version=__version__, python=platform.python_version())


async def asked(options: GatewayOptions) -> tuple[list[Running], MoorageError | None]:
    """Return what a gateway knows; the failure is for after the output, if it cannot be asked."""
    try:
        async with connected(options) as gateway:
            answer = await gateway.get("/replicas")
            return list(_running(answer, gateway.place)), None
    except (KeyError, TypeError, AttributeError):
        problem = "/replicas has another form than expected: is it the gateway's admin port?"
        return [], GatewayError(f"{options.admin or options.gateway}: {problem}")
    except MoorageError as error:
        return [], error


def _running(answer: Mapping[str, Any], place: str) -> Iterator[Running]:
    version = answer.get("moorageVersion") or UNKNOWN
    revision = answer.get("revision", "")
    yield Running(process="gateway", version=version, revision=revision, place=place)
    for service in answer["services"]:
        for replica in service["replicas"]:
            yield Running(
                process=service["service"],
                version=replica.get("moorageVersion") or UNKNOWN,
                place=replica["place"],
            )
    for address, version in answer["binder"].get("moorageVersions", {}).items():
        yield Running(process="binder", version=version or UNKNOWN, place=address)


def as_json(rows: Sequence[Running]) -> str:
    """Return the command's own version, and the cluster's if a gateway was asked."""
    document: dict[str, Any] = {"client": rows[0]}
    if rows[1:]:
        document["cluster"] = rows[1:]
    return msgspec.json.format(msgspec.json.encode(document)).decode()


def as_text(rows: Sequence[Running]) -> str:
    """Return a line for each process, and a note if their versions differ."""
    cells = [(row.process, row.version, _more(row)) for row in rows]
    first, second = (max(len(cell[column]) for cell in cells) for column in (0, 1))
    lines = [f"{p:<{first}}  {v:<{second}}  {more}".rstrip() for p, v, more in cells]
    if len({row.version for row in rows}) > 1:
        lines += ["", SKEW]
    return "\n".join(lines)


def _more(row: Running) -> str:
    python = row.python and f"Python {row.python}"
    revision = row.revision and f"revision {row.revision[:12]}"
    return "  ".join(part for part in (row.place, python, revision) if part)
