"""Who may see only some namespaces sees only their decisions; slow readers miss the oldest."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.cycle.decision import Decision, FilterRecord, PluginRecord, ReasonCount
from gateway.decisions.routes import DecisionRoutes, Decisions
from gateway.settings import GatewaySettings
from gateway.whatif.shadow import Shadows, shadow_route
from gateway.whatif.shadow_tally import Disagreement, ShadowReport
from moorage.testing import make_pod
from moorage_host.http.callers import ForbiddenError, PodsReader, admit, refusal_of
from tests.gateway.decisions.test_decisions import NOW
from tests.gateway.decisions.test_gaps import explainer
from tools.waiting import until

MayGet = Callable[[str], Awaitable[bool]]


def decision(namespace: str, pod: str) -> Decision:
    return Decision(namespace=namespace, pod=pod, uid=pod, time=NOW, profile="moorage")


Client = TestClient[web.Request, Any]


@asynccontextmanager
async def served(
    routes: Iterable[web.RouteDef], reader: PodsReader | None
) -> AsyncIterator[Client]:
    @web.middleware
    async def admitting(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        admit(request, reader)
        try:
            return await handler(request)
        except ForbiddenError as error:
            return refusal_of(error).response()

    app = web.Application(middlewares=[admitting])
    app.router.add_routes(routes)
    async with TestClient(TestServer(app)) as client:
        yield client


@asynccontextmanager
async def serving(decisions: Decisions, may_get: MayGet, *namespaces: str) -> AsyncIterator[Client]:
    """Serve decisions to a caller who may get pods of some namespaces; a pod waits in each."""
    state = ClusterState()
    for namespace in namespaces:
        state.set_pod(make_pod("p", namespace=namespace))
    waiting = dict.fromkeys(state.known_pods(), Waiting(reason="Unschedulable"))
    for namespace in namespaces:
        state.set_pod(make_pod("there", namespace=namespace, node="n1"))
    explains = explainer(decisions.log, state, arrays=decisions.arrays, waiting=waiting)
    routes = DecisionRoutes(decisions=decisions, explainer=explains).routes()
    async with served(routes, PodsReader(user="ann", may_get=may_get)) as client:
        yield client


async def asked(session: Client, path: str) -> tuple[int, Any]:
    async with session.get(path) as response:
        return response.status, await response.json()


async def shop_only(namespace: str) -> bool:
    return namespace == "shop"


async def test_lists_show_the_namespaces_that_the_caller_may_read() -> None:
    decisions = Decisions(GatewaySettings())
    for number in range(5):
        decisions.log.add(decision("bank", f"bank-{number}"))
        decisions.log.add(decision("shop", f"shop-{number}"))
    async with serving(decisions, shop_only, "bank", "shop") as session:
        _, answer = await asked(session, "/decisions/pending")
        assert ([item["pod"] for item in answer["items"]], answer["pods"]) == (["shop/p"], 1)
        _, answer = await asked(session, "/decisions/pending?search=e")
        assert [item["pod"] for item in answer["placed"]] == ["shop/there"]
        pods, after = [], ""
        for _ in range(3):
            _, answer = await asked(session, f"/decisions?limit=2&continue={after}")
            pods += [item["pod"] for item in answer["items"]]
            after = answer["continue"]
        assert (pods, after) == ([f"shop-{number}" for number in (4, 3, 2, 1, 0)], "")
        assert (await asked(session, "/decisions?plugin=P&node=n&pod=bank-1"))[1]["items"] == []
        (hidden,) = decisions.log.attempts("bank", "bank-1")
        for path in (
            "/decisions?namespace=bank",
            "/decisions/pending?namespace=bank",
            "/decisions/bank/bank-1",
            "/decisions/bank/unknown",
            f"/decisions/bank/bank-1/{hidden.id}/nodes",
        ):
            assert (await asked(session, path))[0] == 403, path
        assert (await asked(session, f"/decisions/shop/shop-1/{hidden.id}/nodes"))[0] == 404


async def test_rejections_show_the_namespaces_that_the_caller_may_read() -> None:
    decisions = Decisions(GatewaySettings())
    reasons = [ReasonCount(reason="busy", nodes=2, unresolvable=False, cured_by="capacity")]
    plugins = [PluginRecord(plugin="P", seconds=0.0, rejected=2, reasons=reasons)]
    for namespace in ("bank", "shop"):
        rejected = decision(namespace, "p")
        rejected.uid = make_pod("p", namespace=namespace).uid
        rejected.filter = FilterRecord(nodes=2, feasible=0, seconds=0.0, plugins=plugins)
        decisions.log.add(rejected)
    async with serving(decisions, shop_only, "bank", "shop") as session:
        items = (await asked(session, "/decisions/rejected"))[1]["items"]
        assert [(each["namespace"], each["pod"]) for each in items] == [("shop", "p")]
        (plugin,) = items[0]["plugins"]
        assert plugin["plugin"] == "P"
        assert plugin["reasons"] == [
            {"reason": "busy", "nodes": 2, "unresolvable": False, "curedBy": "capacity"}
        ]
        assert (await asked(session, "/decisions/rejected?limit=1"))[0] == 400


async def test_the_stream_shows_the_namespaces_that_the_caller_may_read() -> None:
    decisions = Decisions(GatewaySettings())
    async with (
        serving(decisions, shop_only) as session,
        session.get("/decisions/stream") as stream,
    ):
        await stream.content.readuntil(b"\n\n")
        for pod in ("bank", "shop"):
            decisions.stream.bound(decision(pod, pod))
        event = await stream.content.readuntil(b"\n\n")
        assert msgspec.json.decode(event.split(b"data: ")[1])["pod"] == "shop"


@pytest.mark.parametrize("made", [3, 10])
async def test_a_client_that_is_too_slow_misses_the_oldest(made: int) -> None:
    go_on, calls = asyncio.Event(), 0

    async def slowly(namespace: str) -> bool:
        nonlocal calls
        calls += 1
        await go_on.wait()
        return True

    decisions = Decisions(GatewaySettings(decision_client_queue=3))
    async with (
        serving(decisions, slowly) as session,
        session.get("/decisions/stream") as stream,
    ):
        await stream.content.readuntil(b"\n\n")
        decisions.stream.bound(decision("shop", "first"))
        await until(lambda: calls)
        for number in range(made):
            decisions.stream.bound(decision("shop", f"p{number}"))
        go_on.set()
        events = [await stream.content.readuntil(b"\n\n") for _ in range(4 + (made > 3))]
    names = [event.split(b"\n")[0] for event in events]
    missed = [b"event: missed"] if made > 3 else []
    assert names == [b"event: decision", *missed, *[b"event: decision"] * 3]
    if missed:
        assert events[1].endswith(b'data: {"decisions":%d}\n\n' % (made - 3))
    pods = [msgspec.json.decode(each.split(b"data: ")[1])["pod"] for each in events[-3:]]
    assert pods == [f"p{number}" for number in range(made - 3, made)]


async def test_a_client_that_leaves_makes_room_for_another() -> None:
    decisions = Decisions(GatewaySettings(decision_clients=1))
    async with serving(decisions, shop_only) as session:
        async with session.get("/decisions/stream") as stream:
            await stream.content.readuntil(b"\n\n")
            assert len(decisions.stream) == 1
            status, refused = await asked(session, "/decisions/stream")
            said = "1 clients follow decisions already: try again later"
            assert (status, refused["error"]) == (503, said)
        await until(lambda: len(decisions.stream) == 0)
        async with session.get("/decisions/stream") as stream:
            assert stream.status == 200


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
    route = shadow_route(cast("Shadows", Found()))
    async with served([route], reader) as client:
        (found,) = (await asked(client, "/shadow"))[1]["profiles"]
    assert [each["namespace"] for each in found["disagreements"]] == shown
    assert found["lastFailure"] == failure
    assert (found["agreement"], found["compared"]) == (0.5, 4)
