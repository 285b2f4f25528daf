"""The queue of what has to be reconciled."""

import asyncio

import pytest

from sandbox.controllers.controllers import LAST_RETRY_SECONDS, MOST_RETRIES, Key, WorkQueue

KEY = Key("Job", "default", "web")


async def test_changes_of_one_object_are_handled_together() -> None:
    now = 0.0
    queue = WorkQueue(lambda: now)
    for _ in range(3):
        queue.add(KEY)
    now = 1.0
    assert await queue.take() == KEY
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await queue.take()


async def test_failures_are_retried_later_each_time_and_not_for_ever() -> None:
    now = 0.0
    queue = WorkQueue(lambda: now)
    waits = []
    for _ in range(MOST_RETRIES):
        queue.failed(KEY)
        before = now
        while True:
            try:
                async with asyncio.timeout(0):
                    assert await queue.take() == KEY
                break
            except TimeoutError:
                now += 0.5
        waits.append(now - before)
    assert waits == sorted(waits)
    assert waits[0] == 0.5
    assert waits[-1] == LAST_RETRY_SECONDS
    queue.failed(KEY)
    now += 1e6
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await queue.take()
