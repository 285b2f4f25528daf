"""A gateway that gets SIGTERM answers until its callers have found the next one."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from tools.inprocess.gateway import plane, pod
from tools.waiting import until


async def test_calls_are_answered_until_the_end_and_connections_are_not_kept(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack, aiohttp.ClientSession() as session:
        process = await stack.enter_async_context(
            plane(tmp_path, nodes=("n1",), shutdown_delay=1.0)
        )
        body = {"Pod": pod(), "NodeNames": ["n1"]}

        async def connection() -> str:
            async with session.post(f"{process.url}/filter", json=body) as answer:
                assert (await answer.json(content_type=None))["NodeNames"] == ["n1"]
                return answer.headers.get("Connection", "")

        async def is_unready() -> bool:
            async with session.get(f"{process.admin}/readyz") as answer:
                return answer.status == 503 and "shutting down" in await answer.text()

        assert await connection() == ""
        ending = asyncio.create_task(stack.aclose())
        await until(is_unready)
        assert [await connection() for _ in range(3)] == ["close"] * 3
        await until(ending.done)
        with pytest.raises(aiohttp.ClientConnectorError):
            await connection()
