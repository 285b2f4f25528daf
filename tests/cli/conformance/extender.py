"""A small extender without a fault, and the ways in which tests break it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

from aiohttp import web

from cli.up.processes import free_ports
from moorage_host.kube_scheduler import ExtenderConfig

HOST = "127.0.0.1"
KNOWN = {f"worker-{number}" for number in range(6)}
TOO_OLD = "the pod needs newer firmware"

Object = dict[str, Any]
Change = Callable[[Object, Any], Any]
"""Gets the arguments of a call and the right answer; returns the wrong one."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(kw_only=True)
class Extender:
    """Rejects the node worker-5 and what it does not know; scores by number; never binds.

    Attributes:
        changes: What is wrong with the answers, by verb.
        wrong: What is wrong beyond the answers: called first, with the right handler.
        options: More options of the server.
        body_limit: The largest body in bytes.
    """

    changes: Mapping[str, Change] = field(default_factory=dict)
    wrong: Callable[[web.Request, Handler], Awaitable[web.StreamResponse]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    body_limit: int = 2**26

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a call."""
        if self.wrong is not None:
            return await self.wrong(request, self._right)
        return await self._right(request)

    async def _right(self, request: web.Request) -> web.StreamResponse:
        verb = request.match_info["verb"]
        try:
            args = {key.lower(): value for key, value in (await request.json()).items()}
            value = ANSWERS[verb](args)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return web.Response(status=400, text=repr(error))
        change = self.changes.get(verb)
        return web.json_response(change(args, value) if change else value)


@asynccontextmanager
async def serving(extender: Extender, **entry: Any) -> AsyncIterator[ExtenderConfig]:
    """Serve an extender; give its entry in kube-scheduler's configuration."""
    (port,) = free_ports(1)
    app = web.Application(client_max_size=extender.body_limit)
    app.router.add_post("/{verb}", extender.handle)
    options = {"keepalive_timeout": 100.0, "shutdown_timeout": 0.1, **extender.options}
    runner = web.AppRunner(app, **options)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        verbs = {f"{verb}_verb": verb for verb in ANSWERS}
        fields = {"weight": 1, "node_cache_capable": True, **verbs, **entry}
        yield ExtenderConfig(url_prefix=f"http://{HOST}:{port}", **fields)
    finally:
        await runner.cleanup()


@contextmanager
def serving_beside(extender: Extender, **entry: Any) -> Iterator[ExtenderConfig]:
    """Do as `serving`, in a thread with a loop of its own."""
    started: Queue[tuple[ExtenderConfig, asyncio.AbstractEventLoop, asyncio.Event]] = Queue()

    async def serve() -> None:
        stop = asyncio.Event()
        async with serving(extender, **entry) as config:
            started.put((config, asyncio.get_running_loop(), stop))
            await stop.wait()

    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(asyncio.run, serve())
        config, loop, stop = started.get(timeout=30)
        try:
            yield config
        finally:
            loop.call_soon_threadsafe(stop.set)
            served.result(timeout=30)


def names(args: Object) -> list[str]:
    """Return the nodes of a call."""
    if args.get("nodenames") is not None:
        return list(args["nodenames"])
    return [item["metadata"]["name"] for item in (args.get("nodes") or {}).get("items") or ()]


def _filter(args: Object) -> Object:
    reasons = {name: "unknown node" for name in names(args) if name not in KNOWN}
    reasons |= {name: TOO_OLD for name in names(args) if name == "worker-5"}
    kept = [name for name in names(args) if name not in reasons]
    is_whole = args.get("nodes") is not None
    given = (args.get("nodes") or {}).get("items") or ()
    items = [item for item in given if item["metadata"]["name"] in kept]
    args["pod"]["metadata"]["uid"]
    return {
        "Nodes": {"metadata": {}, "items": items} if is_whole else None,
        "NodeNames": None if is_whole else kept,
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": reasons,
        "Error": "",
    }


def _prioritize(args: Object) -> list[Object]:
    return [{"Host": name, "Score": len(name) % 11} for name in names(args)]


def _preempt(args: Object) -> Object:
    meta = args["nodenametometavictims"]
    if meta is None:
        meta = {
            node: {"Pods": [{"UID": p["metadata"]["uid"]} for p in of["Pods"] or ()]}
            for node, of in args["nodenametovictims"].items()
        }
    whole = {node: {**of, "Pods": of["Pods"] or []} for node, of in meta.items()}
    return {"NodeNameToMetaVictims": whole}


def _bind(args: Object) -> Object:
    return {"Error": f"there is no pod {args['podnamespace']}/{args['podname']}"}


ANSWERS: Mapping[str, Callable[[Object], Any]] = {
    "filter": _filter,
    "prioritize": _prioritize,
    "preempt": _preempt,
    "bind": _bind,
}
