"""Bearer tokens, as the API server knows them."""

from typing import Any

import pytest
from aiohttp import web

from moorage_host.http.callers import Review
from moorage_host.kube import KubeError
from moorage_host.kube.access import ACCESS, TOKENS, Access


class ApiServer:
    """Knows the token "good" of a user who may do what `allowed` has."""

    def __init__(self) -> None:
        self.allowed = True
        self.tokens_asked = 0
        self.fails = 0
        self.asked: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        asked = {f"/prefix{TOKENS}": self.tokens, f"/prefix{ACCESS}": self.access}
        return await asked[request.path](request)

    async def tokens(self, request: web.Request) -> web.Response:
        if self.fails:
            return web.json_response({"message": "not now"}, status=self.fails)
        self.tokens_asked += 1
        token = (await request.json())["spec"]["token"]
        user = {"username": "prom", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}
        is_known = token == "good"
        status = {"authenticated": is_known, "user": user if is_known else {}}
        return web.json_response({"status": status}, status=201)

    async def access(self, request: web.Request) -> web.Response:
        self.asked.append((await request.json())["spec"])
        return web.json_response({"status": {"allowed": self.allowed}}, status=201)


@pytest.fixture
async def api(serve: Any) -> tuple[ApiServer, Any]:
    server = ApiServer()
    return server, await serve(server.answer)


USER = {"user": "prom", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}


async def test_a_user_is_asked_about_with_all_that_is_known_of_them(api: Any) -> None:
    server, client = api
    access = Access(client, ttl=0, kept=9)
    assert await access.review("good", "/metrics", "get") == Review(user="prom", allowed=True)
    url = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert server.asked == [{**USER, **url}]
    server.allowed = False
    assert await access.review("good", "/metrics", "get") == Review(user="prom", allowed=False)


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


async def test_unknown_tokens_are_nobodys(api: Any) -> None:
    server, client = api
    assert await Access(client, ttl=0, kept=9).review("bad", "/metrics", "get") == Review(
        user="", allowed=False
    )
    assert not server.asked


async def test_answers_are_kept_for_one_path_and_a_time(api: Any) -> None:
    server, client = api
    access = Access(client, ttl=60, kept=9)
    for _ in range(3):
        assert (await access.review("good", "/metrics", "get")).allowed
    assert len(server.asked) == 1
    server.allowed = False
    assert not (await access.review("good", "/decisions/a/b", "get")).allowed
    assert not (await Access(client, ttl=0, kept=9).review("good", "/metrics", "get")).allowed


@pytest.mark.parametrize("status", [403, 500])
async def test_without_an_answer_nobody_may_do_anything(api: Any, status: int) -> None:
    server, client = api
    server.fails = status
    with pytest.raises(KubeError):
        await Access(client, ttl=60, kept=9).review("good", "/metrics", "get")
    with pytest.raises(KubeError, match="not connected"):
        await Access(None, ttl=60, kept=9).review("good", "/metrics", "get")
