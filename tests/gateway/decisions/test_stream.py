"""Who follows decisions gets each one, when it is made and when its pod is bound."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from tests.gateway.decisions.test_lists import decide, deciding
from tools.inprocess.gateway import bind, pod


async def event(response: aiohttp.ClientResponse) -> tuple[str, str, Any]:
    """Return the next event's name, id and data."""
    async with asyncio.timeout(10):
        while True:
            text = (await response.content.readuntil(b"\n\n")).decode()
            if not text.startswith(":"):
                break
    fields = dict(line.split(": ", 1) for line in text.strip().splitlines())
    return fields["event"], fields.get("id", ""), msgspec.json.decode(fields["data"])


async def test_decisions_are_sent_when_they_are_made_and_at_their_bind(tmp_path: Path) -> None:
    async with (
        deciding(tmp_path, http_timeout=5.0) as running,
        running.session.get(f"{running.admin}/decisions/stream") as response,
    ):
        assert response.headers["Content-Type"] == "text/event-stream"
        assert (await response.content.readuntil(b"\n\n")).startswith(b":")
        await decide(running, "a")
        name, number, made = await event(response)
        assert (name, number, made["outcome"]) == ("decision", made["id"], "binding")
        await bind(running, pod("a"), "n2")
        name, number, bound = await event(response)
        assert (number, bound["outcome"], bound["node"]) == (made["id"], "bind failed", "n2")
        _, answer = await running.get("/decisions")
        assert answer["items"] == [bound]


async def test_the_clients_are_bounded(tmp_path: Path) -> None:
    async with deciding(tmp_path, decision_clients=1) as running:
        url = "/decisions/stream"
        async with running.session.get(f"{running.admin}{url}") as response:
            await response.content.readuntil(b"\n\n")
            status, answer = await running.get(url)
            assert status == 503
            assert answer["error"] == ("1 clients follow decisions already: see --decision-clients")
