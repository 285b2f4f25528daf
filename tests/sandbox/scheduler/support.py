"""A cluster with a scripted extender for the tests of the stand-in for kube-scheduler."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from moorage_host.kube_scheduler import KubeSchedulerConfiguration, parse_configuration
from moorage_host.kube_scheduler.cache import KnownPod
from sandbox.apiserver import ApiServer
from sandbox.apiserver.resources.table import parse
from sandbox.apiserver.store.lists import Selection, selected
from sandbox.scheduler import StandInScheduler, running
from tools.inprocess.api import Api, Object
from tools.inprocess.extender import ScriptedExtender
from tools.recordings import recorded_requests, recording_names

OTHER = "1.30-"
"""These have the managedFields of pods, which later versions and the stand-in leave out."""


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

    async def binds(self, body: Object) -> Object:
        """Answer a bind request as an honest binder."""
        self.api.bind(body["PodName"], body["Node"])
        return {"Error": ""}

    def hold_binds(self) -> asyncio.Event:
        """Have bind requests wait for the event, and then be answered as by an honest binder."""
        gate = asyncio.Event()

        async def held(body: Object) -> Object:
            await gate.wait()
            return await self.binds(body)

        self.extender.on["bind"] = held
        return gate

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
    async def scheduler(self, *extenders: Object, **fields: Any) -> AsyncIterator[StandInScheduler]:
        """Run a scheduler; the extenders' URLs default to the scripted one's."""
        entries = [{"urlPrefix": self.extender.url, **extender} for extender in extenders]
        async with running(
            configuration(extenders=entries, **fields), self.server.url, seed=1
        ) as s:
            yield s


def configuration(**fields: Any) -> KubeSchedulerConfiguration:
    """Read a configuration with one profile, and backoffs of a second."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profiles = [{"schedulerName": "moorage"}]
    return parse_configuration(json.dumps({**head, "profiles": profiles, **fields}))


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
