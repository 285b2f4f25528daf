"""An extender that does what a test, or a recorder, wants."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiohttp import web

from tools.planes.embedded import Object

Script = Callable[[Object], Any]


class Call(NamedTuple):
    """One request as it came."""

    verb: str
    body: bytes
    headers: list[tuple[str, str]]

    @property
    def json(self) -> Object:
        value: Object = json.loads(self.body)
        return value

    @property
    def pod(self) -> str:
        body = self.json
        return str(body["PodName"] if "PodName" in body else body["Pod"]["metadata"]["name"])


class ScriptedExtender:
    """An extender that does what the test wants.

    A script gets the decoded body and returns what to answer: an object, bytes as they are, a
    status, or something to await that gives one of these.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.busy: dict[str, int] = {}
        self.most_busy: dict[str, int] = {}
        self.on: dict[str, Script] = {
            "filter": lambda body: keep(body, lambda _: True),
            "prioritize": lambda _: [],
            "preempt": lambda body: {"NodeNameToMetaVictims": metas(body)},
            "bind": lambda _: {"Error": ""},
        }
        self.connections: set[asyncio.Transport | None] = set()
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/{verb}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    @property
    def open_connections(self) -> int:
        return sum(each is not None and not each.is_closing() for each in self.connections)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def verbs(self, pod: str) -> list[str]:
        return [call.verb for call in self.calls if call.pod == pod]

    def bodies(self, verb: str, pod: str | None = None) -> list[Object]:
        return [c.json for c in self.calls if c.verb == verb and pod in (None, c.pod)]

    async def _handle(self, request: web.Request) -> web.Response:
        verb = request.match_info["verb"]
        headers = [(k.decode(), v.decode()) for k, v in request.raw_headers]
        self.connections.add(request.transport)
        call = Call(verb, await request.read(), headers)
        self.calls.append(call)
        self.busy[verb] = self.busy.get(verb, 0) + 1
        self.most_busy[verb] = max(self.busy[verb], self.most_busy.get(verb, 0))
        try:
            answer = self.on[verb](call.json)
            if isinstance(answer, Awaitable):
                answer = await answer
        finally:
            self.busy[verb] -= 1
        if isinstance(answer, int):
            return web.Response(status=answer, text="why, nobody will read")
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return web.Response(body=text, content_type="application/json")


def keep(body: Object, good: Callable[[str], bool], reason: str = "", final: bool = True) -> Object:
    """Answer a filter request in the form in which it came."""
    rejected = {name: reason for name in node_names(body) if not good(name)} if reason else {}
    answer: Object = {"FailedAndUnresolvableNodes" if final else "FailedNodes": rejected}
    if body["NodeNames"] is not None:
        return {"NodeNames": [name for name in body["NodeNames"] if good(name)], **answer}
    items = [node for node in body["Nodes"]["items"] if good(node["metadata"]["name"])]
    return {"Nodes": {"items": items}, **answer}


def node_names(body: Object) -> list[str]:
    if body["NodeNames"] is not None:
        return list(body["NodeNames"])
    return [node["metadata"]["name"] for node in body["Nodes"]["items"]]


def metas(body: Object) -> Object:
    """Return the candidates of a preempt request in the form of its answer."""
    if body["NodeNameToMetaVictims"] is not None:
        value: Object = body["NodeNameToMetaVictims"]
        return value
    return {
        node: {"Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
        for node, victims in body["NodeNameToVictims"].items()
    }
