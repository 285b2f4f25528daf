"""Plugins ask for another attempt on rejected pods, and followers get to know it."""

import asyncio

from moorage_host.plugins.host import RetryRequests


async def collect(requests: RetryRequests, into: list[tuple[str, str, str]]) -> None:
    into.extend([request async for request in requests.follow()])


async def test_all_that_follow_get_each_plugin_and_namespace_once_with_its_newest_reason() -> None:
    requests = RetryRequests()
    first, second = list[tuple[str, str, str]](), list[tuple[str, str, str]]()
    requests.ask("Early", "nobody follows yet", "")
    async with asyncio.TaskGroup() as group:
        for into in (first, second):
            group.create_task(collect(requests, into))
        await asyncio.sleep(0)
        requests.ask("Prices", "old", "")
        requests.ask("Prices", "new", "")
        requests.ask("Prices", "of a team", "team")
        await asyncio.to_thread(requests.ask, "License", "", "")
        requests.end()
    assert first == second
    assert set(first) == {
        ("Prices", "new", ""),
        ("Prices", "of a team", "team"),
        ("License", "", ""),
    }
