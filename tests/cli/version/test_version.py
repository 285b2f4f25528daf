"""What `moorage version` shows, of itself alone and of a gateway with its replicas."""

import asyncio
import json
import platform
from pathlib import Path
from typing import Any

import moorage as library
from moorage.v1 import filter_pb2 as pb
from tests.cli.support import moorage
from tools.inprocess.gateway import (
    binder_service,
    gateway,
    misbehaving_filter,
    ready,
    scorer_service,
)

VERSION = library.__version__


async def version(home: Path, *arguments: str) -> tuple[int, list[str], str]:
    home.mkdir()  # noqa: ASYNC240
    async with moorage(home, "version", *arguments) as command:
        code, errors = await command.ended()
        return code, command.lines, errors


async def test_without_options_it_is_the_command_s_own(tmp_path: Path) -> None:
    code, lines, errors = await version(tmp_path / "text")
    assert (code, errors) == (0, "")
    assert lines == [f"moorage  {VERSION}  Python {platform.python_version()}"]
    _, lines, _ = await version(tmp_path / "json", "-o", "json")
    assert json.loads("\n".join(lines)) == {
        "client": {
            "process": "moorage",
            "version": VERSION,
            "python": platform.python_version(),
        }
    }


async def test_a_gateway_knows_the_versions_of_its_replicas_and_binders(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    binder = f"127.0.0.1:{unused_tcp_port}"

    async def unasked(_: Any) -> pb.FilterResult:
        return pb.FilterResult()

    async with (
        misbehaving_filter(unasked) as filters,  # greets as version 0.1 does
        scorer_service() as scorer,
        gateway(tmp_path, filters=filters, scorer=scorer, binder=binder) as running,
        binder_service(tmp_path, port=unused_tcp_port),
    ):
        async with asyncio.timeout(30):
            while not (await running.get("/replicas"))[1]["binder"]["moorageVersions"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await ready(running)
        code, lines, errors = await version(tmp_path / "text", "--admin", running.admin)
        assert (code, errors) == (0, "")
        assert [line.split()[:2] for line in lines[:2]] == [
            ["moorage", VERSION],
            ["gateway", VERSION],
        ]
        rows = {tuple(line.split()) for line in lines[2:5]}
        assert rows == {
            ("filter", "before", "0.2", filters),
            ("scorer", VERSION, scorer),
            ("binder", VERSION, binder),
        }
        assert "versions differ" in lines[-1]
        _, lines, _ = await version(tmp_path / "json", "--admin", running.admin, "-o", "json")
        found = json.loads("\n".join(lines))["cluster"]
        assert {row["process"] for row in found} == {"gateway", "filter", "scorer", "binder"}


async def test_a_gateway_that_cannot_be_asked_is_a_failure_after_the_command_s_own(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    admin = f"http://127.0.0.1:{unused_tcp_port}"
    code, lines, errors = await version(tmp_path / "home", "--admin", admin)
    assert code == 1
    assert lines[0].startswith(f"moorage  {VERSION}")
    assert "the gateway's admin port cannot be asked" in errors
