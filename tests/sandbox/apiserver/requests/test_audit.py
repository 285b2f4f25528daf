"""The audit log has every write, whatever became of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sandbox.apiserver import ApiServer, Fault, Settings
from tests.sandbox.apiserver.support import NODES, PODS, Http, pod
from tools.waiting import until


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with ApiServer(Settings(audit_log=tmp_path / "audit.jsonl")) as server:
        yield server


def events(api: ApiServer) -> list[dict[str, Any]]:
    assert api.settings.audit_log
    return [json.loads(line) for line in api.settings.audit_log.read_text().splitlines()]


def brief(api: ApiServer) -> list[tuple[str, str, str, int]]:
    """Verb, resource with subresource, name and code of each line."""
    return [
        (
            event["verb"],
            "/".join(filter(None, map(event["objectRef"].get, ("resource", "subresource")))),
            event["objectRef"].get("name", ""),
            event["responseStatus"]["code"],
        )
        for event in events(api)
    ]


async def test_it_has_each_write_in_order_with_its_code_and_no_reads(
    api: ApiServer, http: Http
) -> None:
    await http.send("POST", PODS, pod("a"))
    await http.get(PODS)
    await http.bind("a", "n1")
    await http.bind("a", "n1")
    await http.send("DELETE", f"{PODS}/a")

    assert brief(api) == [
        ("create", "pods", "a", 201),
        ("create", "pods/binding", "a", 201),
        ("create", "pods/binding", "a", 409),
        ("delete", "pods", "a", 200),
    ]
    binding = events(api)[1]
    assert binding["requestObject"]["target"]["name"] == "n1"
    assert binding["userAgent"].startswith("Python")


async def test_a_write_whose_answer_is_lost_counts_as_done_and_a_refused_one_is_marked(
    api: ApiServer, http: Http
) -> None:
    api.faults.add(Fault(verb="create", resource="nodes", done=True, drop=True))
    with pytest.raises(aiohttp.ClientError):
        await http.send("POST", NODES, {"metadata": {"name": "n1"}})
    api.faults.add(Fault(verb="create", resource="nodes", status=429))
    await http.send("POST", NODES, {"metadata": {"name": "n2"}})

    done, refused = events(api)
    assert done["responseStatus"]["code"] == 201
    assert "annotations" not in done
    assert refused["responseStatus"]["code"] == 429
    assert refused["annotations"] == {"sandbox.moorage.io/fault": "429"}


async def test_a_client_that_hangs_up_before_the_write_leaves_a_line(api: ApiServer) -> None:
    api.faults.add(Fault(verb="create", resource="pods", delay_seconds=60))
    async with aiohttp.ClientSession(api.url) as session:
        task = asyncio.create_task(session.post(PODS, json=pod("a")))
        await until(lambda: not api.faults.waiting())
        task.cancel()
        await until(lambda: brief(api) == [("create", "pods", "", 504)])
