"""Who may see which disagreements."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.whatif.shadow import Shadows, shadow_route
from gateway.whatif.shadow_tally import Disagreement, ShadowReport
from moorage_host.http.callers import PodsReader, admit

NOW = datetime(2026, 11, 23, tzinfo=UTC)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def disagreement(namespace: str) -> Disagreement:
    return Disagreement(
        id="1-1",
        time=NOW,
        namespace=namespace,
        pod="web",
        uid="u",
        nodes=2,
        feasible=2,
        shadow_feasible=2,
    )


class Found:
    """What a gateway has found out: a disagreement in each of two namespaces, and a failure."""

    def reports(self) -> list[ShadowReport]:
        return [
            ShadowReport(
                profile="moorage",
                since=NOW,
                policy_revision="r",
                max_share=0.1,
                share=0.01,
                agreement=0.5,
                compared=4,
                agreed=2,
                disagreed_filter=0,
                disagreed_winner=2,
                failed=1,
                last_failure="plugin Odd: cannot place a/web",
                skipped={},
                reasons=[],
                disagreements=[disagreement("a"), disagreement("b")],
            )
        ]


@asynccontextmanager
async def client(reader: PodsReader | None) -> AsyncIterator[TestClient[web.Request, Any]]:
    @web.middleware
    async def admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
        admit(request, reader)
        return await handler(request)

    app = web.Application(middlewares=[admitted])
    app.router.add_routes([shadow_route(cast("Shadows", Found()))])
    async with TestClient(TestServer(app)) as asking:
        yield asking


def tenant(*namespaces: str) -> PodsReader:
    async def may_get(namespace: str) -> bool:
        return namespace in namespaces

    return PodsReader(user="tenant", may_get=may_get)


@pytest.mark.parametrize(
    ("reader", "shown", "failure"),
    [
        (None, ["a", "b"], "plugin Odd: cannot place a/web"),
        (tenant(""), ["a", "b"], "plugin Odd: cannot place a/web"),
        (tenant("b"), ["b"], ""),
        (tenant(), [], ""),
    ],
)
async def test_callers_see_the_disagreements_of_their_namespaces(
    reader: PodsReader | None, shown: list[str], failure: str
) -> None:
    async with client(reader) as asking, asking.get("/shadow") as response:
        (found,) = (await response.json())["profiles"]
    assert [each["namespace"] for each in found["disagreements"]] == shown
    assert found["lastFailure"] == failure
    assert (found["agreement"], found["compared"]) == (0.5, 4)
