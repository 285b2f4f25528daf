"""A cluster and a scripted extender for the tests of the stand-in for kube-scheduler."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from cli.conformance.recordings import recorded_requests, recording_names
from sandbox.apiserver import ApiServer
from sandbox.apiserver.resources.table import parse
from sandbox.apiserver.store.lists import Selection, selected
from sandbox.scheduler import Configuration, Scheduler, parse_configuration, running
from sandbox.scheduler.cache import KnownPod
from tools.inprocess.api import Api, Object

Script = Callable[[Object], Any]
OTHER = "1.30-"
"""These have the managedFields of pods, which later versions and the stand-in leave out."""


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


class World:
    """An API server, an extender and what tests do with them."""

    def __init__(self, server: ApiServer, extender: ScriptedExtender) -> None:
        self.server = server
        self.api = Api(server)
        self.extender = extender

    def node(self, name: str, *, cpu: str = "4", pods: str = "110", **fields: Any) -> None:
        spec = {"taints": fields.pop("taints", []), "unschedulable": fields.pop("cordoned", False)}
        allocatable = {"cpu": cpu, "memory": "8Gi", "pods": pods}
        metadata = {"name": name, "labels": fields.pop("labels", {})}
        status = {"allocatable": allocatable, **fields}
        self.api.create("/api/v1/nodes", {"metadata": metadata, "spec": spec, "status": status})

    def pod(self, name: str, *, cpu: str = "100m", **spec: Any) -> Object:
        container = {"name": "main", "image": "a", "resources": {"requests": {"cpu": cpu}}}
        return self.api.pod(name, **{"containers": [container], "schedulerName": "moorage", **spec})

    def priority_class(self, value: int, **fields: Any) -> str:
        """Create a PriorityClass and return its name."""
        name = f"priority-{value}"
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        self.api.create(path, {"metadata": {"name": name}, "value": value, **fields})
        return name

    async def delete(self, pod: str) -> None:
        await self._send("DELETE", f"/api/v1/namespaces/default/pods/{pod}")

    async def bind(self, pod: str, node: str) -> None:
        """Bind a pod behind the scheduler's back."""
        binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        await self._send("POST", f"/api/v1/namespaces/default/pods/{pod}/binding", binding)

    async def change(self, path: str, patch: Object) -> None:
        """Merge something into an object."""
        await self._send("PATCH", path, patch)

    async def binds(self, body: Object) -> Object:
        """Answer a bind request as an honest binder."""
        await self.bind(body["PodName"], body["Node"])
        return {"Error": ""}

    def hold_binds(self) -> asyncio.Event:
        """Have bind requests wait for the event, and then be answered as by an honest binder."""
        gate = asyncio.Event()

        async def held(body: Object) -> Object:
            await gate.wait()
            return await self.binds(body)

        self.extender.on["bind"] = held
        return gate

    async def _send(self, method: str, path: str, body: Object | None = None) -> None:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        url, data = self.server.url + path, json.dumps(body or {})
        headers = {"Content-Type": kind}
        async with aiohttp.request(method, url, data=data, headers=headers) as response:
            assert response.ok, await response.text()

    def place(self, pod: str) -> str | None:
        return self.api.node_of(pod)

    def placed(self, *pods: str) -> Callable[[], bool]:
        return lambda: all(self.place(pod) for pod in pods)

    def condition(self, pod: str) -> tuple[str, str]:
        """Return reason and message of PodScheduled, empty if there is none."""
        for condition in self.api.read_pod(pod)["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled":
                return condition.get("reason", ""), condition.get("message", "")
        return "", ""

    def events(self, pod: str) -> list[Object]:
        resource = parse("/apis/events.k8s.io/v1/namespaces/default/events").resource
        view = resource.view
        selection = Selection(resource=resource, namespace="default")
        items = selected(self.server.cluster.store, selection)
        shown = [view.show(item.object) if view else item.object for item in items]
        return [event for event in shown if event["regarding"]["name"] == pod]

    @asynccontextmanager
    async def scheduler(self, *extenders: Object, **fields: Any) -> AsyncIterator[Scheduler]:
        """Run a scheduler; the extenders' URLs default to the scripted one's."""
        entries = [{"urlPrefix": self.extender.url, **extender} for extender in extenders]
        async with running(
            configuration(extenders=entries, **fields), self.server.url, seed=1
        ) as s:
            yield s


def configuration(**fields: Any) -> Configuration:
    """Read a configuration with one profile, and backoffs of a second."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profiles = [{"schedulerName": "moorage"}]
    return parse_configuration(json.dumps({**head, "profiles": profiles, **fields}))


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


def recordings(mode: str) -> Iterator[tuple[str, Object, str]]:
    """Yield verb, headers and body of each recorded request, the newest kube-scheduler's first.

    The mode is names or nodes.
    """
    for name in reversed(recording_names()):
        if name.endswith(f"-{mode}") and not name.startswith(OTHER):
            for request in recorded_requests(name):
                yield request.verb, dict(request.headers), request.body


def known_pod(name: str = "web", *, uid: str = "", **spec: Any) -> KnownPod:
    """Build a pod as the scheduler's cache has it."""
    metadata = {"name": name, "namespace": "default", "uid": uid or name, "resourceVersion": "1"}
    return KnownPod({"metadata": metadata, "spec": spec})


def requesting(**requests: str) -> Object:
    """Return the containers of a pod that requests this."""
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


async def never() -> None:
    """Wait until cancelled."""
    await asyncio.Event().wait()
