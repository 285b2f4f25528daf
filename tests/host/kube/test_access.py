"""Bearer tokens, as the API server knows them."""

import asyncio
import base64
from typing import Any

import pytest
from aiohttp import web

from moorage_host.http.callers import Review
from moorage_host.kube import KubeError
from moorage_host.kube.access import ACCESS, TOKENS, Access
from tools.waiting import until


class ApiServer:
    """Knows the token "good" of a user who may do what `allowed` has."""

    def __init__(self) -> None:
        self.allowed = True
        self.tokens_asked = 0
        self.fails = 0
        self.held = asyncio.Event()
        self.held.set()
        self.asked: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        asked = {f"/prefix{TOKENS}": self.tokens, f"/prefix{ACCESS}": self.access}
        return await asked[request.path](request)

    async def tokens(self, request: web.Request) -> web.Response:
        if self.fails:
            return web.json_response({"message": "not now"}, status=self.fails)
        self.tokens_asked += 1
        await self.held.wait()
        token = (await request.json())["spec"]["token"]
        user = {"username": "prom", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}
        is_known = token in ("good", "better")
        status = {"authenticated": is_known, "user": user if is_known else {}}
        return web.json_response({"status": status}, status=201)

    async def access(self, request: web.Request) -> web.Response:
        self.asked.append((await request.json())["spec"])
        return web.json_response({"status": {"allowed": self.allowed}}, status=201)


@pytest.fixture
async def api(serve: Any) -> tuple[ApiServer, Any]:
    server = ApiServer()
    return server, await serve(server.answer)


HOME = "10.0.0.1"

USER = {"user": "prom", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}


async def test_a_user_is_asked_about_with_all_that_is_known_of_them(api: Any) -> None:
    server, client = api
    access = Access(client, ttl=0, kept=9)
    assert await access.review("good", "/metrics", "get", HOME) == Review(user="prom", allowed=True)
    url = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert server.asked == [{**USER, **url}]
    server.allowed = False
    assert await access.review("good", "/metrics", "get", HOME) == Review(
        user="prom", allowed=False
    )


async def test_the_pods_of_a_namespace_are_asked_about_once(api: Any) -> None:
    server, client = api
    access = Access(client, ttl=60, kept=2)
    for namespace in ("a", "a", "", ""):
        assert await access.may_get_pods("good", namespace)
    pods = {"version": "v1", "resource": "pods", "verb": "get"}
    assert server.asked == [
        {**USER, "resourceAttributes": {**pods, "namespace": namespace}} for namespace in ("a", "")
    ]
    # Two answers are kept: a third one is in the place of the oldest.
    server.allowed = False
    assert not await access.may_get_pods("good", "b")
    assert await access.may_get_pods("good", "")
    assert not await access.may_get_pods("good", "a")
    assert (server.tokens_asked, len(server.asked)) == (1, 4)
    assert not await access.may_get_pods("bad", "a")


async def test_answers_are_kept_for_one_path_and_a_time(api: Any) -> None:
    server, client = api
    access = Access(client, ttl=60, kept=9)
    for _ in range(3):
        assert (await access.review("good", "/metrics", "get", HOME)).allowed
    assert len(server.asked) == 1
    server.allowed = False
    assert not (await access.review("good", "/decisions/a/b", "get", HOME)).allowed
    assert not (await Access(client, ttl=0, kept=9).review("good", "/metrics", "get", HOME)).allowed


@pytest.mark.parametrize("status", [403, 500])
async def test_without_an_answer_nobody_may_do_anything(api: Any, status: int) -> None:
    server, client = api
    server.fails = status
    with pytest.raises(KubeError):
        await Access(client, ttl=60, kept=9).review("good", "/metrics", "get", HOME)
    with pytest.raises(KubeError, match="not connected"):
        await Access(None, ttl=60, kept=9).review("good", "/metrics", "get", HOME)


async def test_a_known_token_is_answered_from_the_last_review_while_it_is_renewed(api: Any) -> None:
    server, client = api
    access = Access(client, ttl=0.2, kept=9)
    assert (await access.review("good", "/metrics", "get", HOME)).allowed
    server.held.clear()
    ending = asyncio.get_running_loop().time() + 0.2
    while asyncio.get_running_loop().time() < ending or server.tokens_asked < 2:
        assert (await access.review("good", "/metrics", "get", HOME)).allowed
        await asyncio.sleep(0.01)
    server.held.set()


async def test_a_flood_of_unknown_tokens_keeps_other_addresses_out_of_no_turn(api: Any) -> None:
    server, client = api
    access = Access(client, ttl=60, kept=9)
    assert (await access.review("good", "/metrics", "get", HOME)).allowed
    server.held.clear()

    async def flood(number: int) -> str:
        try:
            await access.review(f"junk{number}", "/metrics", "get", "10.6.6.6")
        except KubeError as error:
            return str(error)
        return ""

    stranger = [asyncio.create_task(flood(number)) for number in range(200)]
    await until(lambda: sum(task.done() for task in stranger) >= 180)
    refused = [task for task in stranger if task.done()]
    assert len(refused) == 180, "four are asked about, and sixteen wait"
    assert "too many bearer tokens of address 10.6.6.6" in refused[0].result()
    assert (await access.review("good", "/metrics", "get", HOME)).allowed
    other = asyncio.create_task(access.review("better", "/metrics", "get", HOME))
    await asyncio.sleep(0)
    asked = server.tokens_asked
    server.held.set()
    assert (await other).allowed
    assert server.tokens_asked - asked < 12, "its turn came after those that ran already"
    await asyncio.gather(*stranger)


def jwt(claims: bytes) -> str:
    return f"eyJhbGciOiJub25lIn0.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"


@pytest.mark.parametrize(
    ("token", "asked"),
    [
        ("two words", 0),
        ("x" * 20_000, 0),
        ("eyJhbGciOiJub25lIn0.!!!.x", 0),
        ("eyJhbGciOiJub25lIn0.e30", 0),
        (jwt(b"no json"), 0),
        (jwt(b'{"exp": 1700000000}'), 0),
        (jwt(b'{"exp": 99999999999}'), 1),
        (jwt(b"{}"), 1),
        ("k8s-aws-v1.aHR0cHM6Ly9zdHM", 1),
        ("sha256~R3gNi0xVJ-opaque", 1),
    ],
)
async def test_what_can_be_no_token_or_has_expired_costs_no_review(
    api: Any, token: str, asked: int
) -> None:
    server, client = api
    access = Access(client, ttl=60, kept=9)
    for _ in range(2):
        assert not (await access.review(token, "/metrics", "get", HOME)).user
    assert server.tokens_asked == asked
