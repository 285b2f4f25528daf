"""An extender that keeps all nodes, finds them alike, binds, and writes down what it is asked."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from cli.up.processes import free_ports
from moorage_host.kube import KubeClient
from tools.planes.embedded import Object

HOST = "127.0.0.1"
RECORDED_HOST = f"{HOST}:18200"
"""What is recorded as the Host header: the port is another one in each run."""


class Recorder:
    """What an extender was asked.

    Attributes:
        url: The URL prefix of the extender.
        lines: A line of JSON for each request.
    """

    def __init__(self, url: str, client: KubeClient) -> None:
        self.url = url
        self.lines: list[str] = []
        self._client = client

    async def __call__(self, request: web.Request) -> web.Response:
        """Record a request and answer it."""
        verb = request.match_info["verb"]
        body = (await request.read()).decode()
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        record = {"verb": verb, "headers": {"Host": RECORDED_HOST, **headers}, "body": body}
        self.lines.append(json.dumps(record))
        args = json.loads(body)
        if verb == "bind":
            return web.json_response({"Error": await self._bind(args)})
        return web.json_response(ANSWERS[verb](args))

    async def _bind(self, args: Object) -> str:
        namespace, name = args["PodNamespace"], args["PodName"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": args["PodUID"]},
            "target": {"kind": "Node", "name": args["Node"]},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        answer = await self._client.request(
            "POST", path, body=msgspec.json.encode(body), timeout=30
        )
        return "" if answer.status < 300 else answer.body.decode()


@asynccontextmanager
async def serving(client: KubeClient) -> AsyncIterator[Recorder]:
    """Serve an extender; *client* has the right to bind."""
    (port,) = free_ports(1)
    recorder = Recorder(f"http://{HOST}:{port}", client)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{verb}", recorder)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        yield recorder
    finally:
        await runner.cleanup()


def _filter(args: Object) -> Object:
    return {"Nodes": args["Nodes"], "NodeNames": args["NodeNames"]}


def _prioritize(args: Object) -> list[Object]:
    return []


def _preempt(args: Object) -> Object:
    given = args["NodeNameToMetaVictims"]
    if given is None:
        given = {
            node: {**victims, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
            for node, victims in args["NodeNameToVictims"].items()
        }
    return {"NodeNameToMetaVictims": given}


ANSWERS: dict[str, Callable[[Object], object]] = {
    "filter": _filter,
    "prioritize": _prioritize,
    "preempt": _preempt,
}
