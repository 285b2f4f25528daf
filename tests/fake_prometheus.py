"""A server that answers queries as Prometheus does, with what a test says."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from moorage.measurements import PrometheusSettings
from moorage.measurements.prometheus.query import MEASURE_LABEL

Answer = Sequence[tuple[Mapping[str, str], float | str]]


class FakePrometheus:
    """Counts and answers queries.

    Attributes:
        answer: What it answers to a query, by the text of the query.
        status: The HTTP status of failures to come; 200 answers.
        allows_post: Whether it takes POST.
        requests: The requests so far: method, path, form and headers.
        stuck: Whether it takes requests and never answers them.
        redirects_to: Where it sends clients, if not empty.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str], Answer] = lambda query: ()
        self.status = 200
        self.body: bytes | None = None
        self.allows_post = True
        self.refuses_post_with = 405
        self.stuck = False
        self.redirects_to = ""
        self.requests: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.address = ""

    @property
    def queries(self) -> list[str]:
        return [form["query"] for _, _, form, _ in self.requests]

    def settings(self, **others: Any) -> PrometheusSettings:
        """Return settings that lead here, with a short interval."""
        return PrometheusSettings(address=self.address, **{"interval": "10ms", **others})

    def measures(self, values: Mapping[str, Mapping[str, float]], label: str = "node") -> None:
        """Answer with values by measure and node, whatever the query."""
        self.answer = lambda query: [
            ({label: node, MEASURE_LABEL: measure}, value)
            for measure, by_node in values.items()
            for node, value in by_node.items()
        ]

    async def handle(self, request: web.Request) -> web.Response:
        form = {**request.query, **{k: str(v) for k, v in (await request.post()).items()}}
        self.requests.append((request.method, request.path, form, dict(request.headers)))
        if self.stuck:
            await asyncio.Event().wait()
        if request.method == "POST" and not self.allows_post:
            return web.Response(status=self.refuses_post_with)
        if self.redirects_to:
            return web.Response(status=302, headers={"Location": self.redirects_to})
        if self.body is not None:
            return web.Response(status=self.status, body=self.body)
        if self.status != 200:
            error = {"status": "error", "errorType": "bad_data", "error": "no such thing"}
            return web.json_response(error, status=self.status)
        return web.json_response({"status": "success", "data": self._data(form)})

    def _data(self, form: Mapping[str, str]) -> dict[str, Any]:
        answer = self.answer(form["query"])
        samples = [{"metric": m, "value": [0, str(v)]} for m, v in answer]
        return {"resultType": "vector", "result": samples}


@asynccontextmanager
async def fake_prometheus(
    tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncIterator[FakePrometheus]:
    """Run one on a free port, or on a certain one."""
    fake = FakePrometheus()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "localhost" if tls else "127.0.0.1", port, ssl_context=tls)
        await site.start()
        host, bound = runner.addresses[0][:2]
        fake.address = f"https://localhost:{bound}" if tls else f"http://{host}:{bound}"
        yield fake
    finally:
        await runner.cleanup()
