"""What the conformance kit finds in the bench's reference extender, which is as most in Go are."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bench.processes.goprograms import NOTHING, program
from cli.conformance.requests import Requests
from moorage_host.kube_scheduler import ExtenderConfig
from tests.cli.conformance.running import checked

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def url() -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        await asyncio.to_thread(program, NOTHING),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # the traces of its panics
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{(await process.stdout.readline()).decode().strip()}"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
async def test_it_panics_without_nodes_and_chunks_large_answers(url: str, names_only: bool) -> None:
    config = ExtenderConfig(
        url_prefix=url,
        filter_verb="filter",
        prioritize_verb="prioritize",
        bind_verb="bind",
        weight=1,
        node_cache_capable=names_only,
    )
    report = await asyncio.to_thread(checked, Requests(config=config))
    assert report.failed == {}
    assert report.warned.keys() == {"http-malformed", "http-connections"}
