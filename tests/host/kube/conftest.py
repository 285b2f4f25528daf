from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from moorage_host.kube import KubeClient, connect

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[KubeClient]]


def write_minimal_kubeconfig(file: Path, server: str) -> Path:
    file.write_text(
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: a}}]\n"
        f"clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n"
    )
    return file


def always(status: int = 200, **answer: Any) -> Handler:
    """Answer every request with the same body or JSON."""

    async def handler(_: web.Request) -> web.Response:
        is_json = "data" in answer
        return (web.json_response if is_json else web.Response)(status=status, **answer)

    return handler


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Start a server with one handler for everything; return a client for it."""
    async with AsyncExitStack() as stack:

        async def start(handler: Handler) -> KubeClient:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", handler)
            server = TestServer(app)
            await server.start_server()
            stack.push_async_callback(server.close)
            url = str(server.make_url("/prefix"))
            client = await connect(write_minimal_kubeconfig(tmp_path / "kubeconfig", url))
            stack.push_async_callback(client.close)
            return client

        yield start
