"""A cluster with Moorage, and what scenarios do with it: the same for both control planes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import msgspec
import yaml

from moorage_host.kube import KubeClient, Response, connect
from tests.scenarios.proxy import Proxy
from tools.planes.caller import Caller
from tools.planes.embedded import ROOT, Identity, Object, Plane, shipped_config
from tools.planes.moorage import Moorage
from tools.planes.objects import NAMESPACE
from tools.planes.programs import Program
from tools.waiting import until

HERE = Path(__file__).parent
KINDS: tuple[Identity, ...] = ("gateway", "binder")
"""Who of Moorage reaches the API server."""

PATIENCE = 60.0
AT_ONCE = 32

PATHS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "Pod": f"/api/v1/namespaces/{NAMESPACE}/pods",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "Job": f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
    "StatefulSet": f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
}
REMOVED_BY_NAME = (
    "Deployment",
    "Job",
    "PriorityClass",
    "StatefulSet",
    "PersistentVolume",
    "DeviceClass",
    "ResourceSlice",
)
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
PODS = PATHS["Pod"]


class World(Caller):
    """One control plane, Moorage, and schedulers as scenarios want them.

    Attributes:
        plane: The control plane.
        services: Moorage's processes.
        client: The API server with all rights.
    """

    def __init__(self, plane: Plane, services: Moorage, client: KubeClient, proxy: Proxy) -> None:
        super().__init__(services.extender, services.admin)
        self.plane = plane
        self.services = services
        self.client = client
        self.proxy = proxy
        self.schedulers: dict[str, Program] = {}
        self._extra: list[str] = []
        self._finished: list[Program] = []

    @classmethod
    @asynccontextmanager
    async def bare(cls, plane: Plane) -> AsyncIterator[Self]:
        """Start a control plane, and nothing of Moorage; stop it in the end."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(plane.stop)
            await plane.start()
            client = await connect(plane.kubeconfig("admin"))
            stack.push_async_callback(client.close)
            services = Moorage(plane.directory, lambda _: plane.kubeconfig("gateway"))
            proxy = Proxy(plane.directory, plane.kubeconfig("binder"))
            yield cls(plane, services, client, proxy)

    @classmethod
    @asynccontextmanager
    async def started(cls, plane: Plane, **how: Any) -> AsyncIterator[Self]:
        """Start everything but kube-schedulers; how is told as to `with_moorage`."""
        async with cls.bare(plane) as bare, bare.with_moorage(**how) as world:
            yield world

    @asynccontextmanager
    async def with_moorage(
        self,
        policy: Object | None = None,
        *,
        through_proxy: bool = True,
        options: Mapping[str, Sequence[str]] = MappingProxyType({}),
        **how: Any,
    ) -> AsyncIterator[Self]:
        """Start Moorage on this control plane; stop it in the end.

        Args:
            policy: By default that of the scenarios.
            through_proxy: Whether the binder reaches the API server through a proxy.
            options: Command-line options by kind of process, "" for all.
            **how: As for `Moorage`.
        """
        plane, own = self.plane, {kind: [*those] for kind, those in options.items()}
        for kind in ("filter", "scorer", "binder"):
            own.setdefault(kind, []).append(f"--plugin={HERE / 'plugins'}")
        own.setdefault("gateway", []).append("--cache-verify-share=1")
        content = scenarios_policy(plane.directory) if policy is None else policy
        (plane.directory / "policy.yaml").write_text(yaml.safe_dump(content))
        proxy = Proxy(plane.directory, plane.kubeconfig("binder"))
        async with AsyncExitStack() as stack:
            configs: dict[str, Path] = {kind: plane.kubeconfig(kind) for kind in KINDS}
            if through_proxy:
                configs["binder"] = await proxy.start(stack)
            moorage = Moorage(plane.directory, configs.__getitem__, options=own, **how)
            await stack.enter_async_context(moorage.started())
            yield type(self)(plane, moorage, self.client, proxy)

    @asynccontextmanager
    async def secured(self, folders: Path) -> AsyncIterator[Self]:
        """Start Moorage with certificates; in the end stop it and leave no node and no pod."""
        try:
            async with self.with_moorage(through_proxy=False, certificates=folders) as world:
                yield world
        finally:
            await self.empty()

    def programs(self) -> list[Program]:
        """Return everything that runs or was started."""
        services = self.services.programs.values()
        return [*self.plane.programs(), *services, *self._finished, *self.schedulers.values()]

    # ---- kube-scheduler

    @property
    def entry(self) -> Object:
        """How the shipped extender entry is changed: our address, and Moorage binds."""
        return {"urlPrefix": self.services.extender, "bindVerb": "bind"}

    @asynccontextmanager
    async def scheduler(
        self,
        *profiles: str,
        name: str = "kube-scheduler",
        top: Object | None = None,
        **extender: Any,
    ) -> AsyncIterator[Program]:
        """Run a kube-scheduler with the shipped configuration and a bindVerb, changed as told.

        It tries a pod again sooner than by default: in two seconds at most.

        Args:
            *profiles: The schedulerNames that it serves; by default "steered".
            name: What the process is called.
            top: Fields of the configuration to replace.
            **extender: Fields of the extender to replace; None removes one.
        """
        config = shipped_config()
        config["leaderElection"] = {"leaderElect": False}
        config["podMaxBackoffSeconds"] = 2
        config["profiles"] = [{"schedulerName": p} for p in profiles or ("steered",)]
        changed = config["extenders"][0] | self.entry | extender
        config["extenders"] = [{k: v for k, v in changed.items() if v is not None}]
        async with self.configured_scheduler(name, config | (top or {})) as program:
            yield program

    @asynccontextmanager
    async def configured_scheduler(self, name: str, config: Object) -> AsyncIterator[Program]:
        """Run a kube-scheduler with a configuration."""
        program = self.plane.scheduler(name, config)
        program.log.write_bytes(b"")
        self.schedulers[name] = program
        try:
            await program.start()
            yield program
        finally:
            await program.stop()
            self._finished.append(self.schedulers.pop(name))

    # ---- objects

    async def request(self, method: str, path: str, body: Object | None = None) -> Response:
        """Send a request with all rights; whatever the answer is."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else msgspec.json.encode(body)
        return await self.client.request(method, path, body=data, content_type=kind, timeout=30)

    async def read(self, path: str) -> Object:
        answer: Object = msgspec.json.decode((await self.request("GET", path)).check().body)
        return answer

    async def create(self, *objects: Object) -> list[Object]:
        """Create objects side by side; return them as the API server has them."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(obj: Object) -> Object:
            async with places:
                response = await self.request("POST", PATHS[obj["kind"]], obj)
            created: Object = msgspec.json.decode(response.check().body)
            if obj["kind"] in REMOVED_BY_NAME:
                self._extra.append(f"{PATHS[obj['kind']]}/{obj['metadata']['name']}")
            return created

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(obj)) for obj in objects]
        return [task.result() for task in tasks]

    async def remove(self, obj: Object) -> None:
        """Delete an object that `clear` would delete by its name."""
        path = f"{PATHS[obj['kind']]}/{obj['metadata']['name']}"
        (await self.request("DELETE", path)).check()
        self._extra.remove(path)

    async def nodes(self, *objects: Object, patience: float = PATIENCE) -> None:
        """Create nodes and wait until the gateway knows them."""
        await self.create(*objects)

        async def known() -> bool:
            return await self.metric("moorage_cache_size", type="nodes") >= len(objects)

        await self.until(known, patience)

    async def pods(self) -> dict[str, Object]:
        """Return all pods by name."""
        items = (await self.read(PODS)).get("items") or []
        return {obj["metadata"]["name"]: obj for obj in items}

    async def places(self) -> dict[str, str]:
        """Return the node of each pod by name, "" for none."""
        return {name: obj["spec"].get("nodeName", "") for name, obj in (await self.pods()).items()}

    async def bound(self, *names: str, patience: float = PATIENCE) -> dict[str, str]:
        """Wait until the pods (by default all) are bound; return all places."""

        async def done() -> bool:
            places = await self.places()
            return all(places.get(name) for name in names or places)

        await self.until(done, patience)
        return await self.places()

    async def placed(self, count: int) -> None:
        """Wait until at least so many pods are bound."""

        async def done() -> bool:
            return sum(map(bool, (await self.places()).values())) >= count

        await self.until(done)

    async def condition(self, name: str, reason: str) -> str:
        """Wait until a pod is said to be unscheduled for a reason; return the message."""
        found: Object = {}

        async def there() -> bool:
            nonlocal found
            conditions = (await self.pods())[name].get("status", {}).get("conditions") or ()
            found = next((c for c in conditions if c["type"] == "PodScheduled"), {})
            return found.get("reason") == reason

        await self.until(there)
        return str(found["message"])

    async def events(self, name: str, reason: str = "FailedScheduling") -> list[str]:
        """Return what the events of a reason say of a pod, the oldest first."""
        items = (await self.read(EVENTS)).get("items") or []
        return [
            str(item.get("note"))
            for item in sorted(items, key=lambda item: str(item.get("eventTime")))
            if item.get("reason") == reason and item["regarding"].get("name") == name
        ]

    async def event(self, name: str, text: str = "", reason: str = "FailedScheduling") -> str:
        """Wait for an event of a pod that contains a text; return it."""
        found: list[str] = []

        async def there() -> bool:
            found[:] = [note for note in await self.events(name, reason) if text in note]
            return bool(found)

        await self.until(there)
        return found[-1]

    # ---- Moorage

    async def groups(self) -> Object:
        """Return the groups that the gateway knows."""
        return await self.get("groups")

    async def explanation(self, name: str) -> Object:
        """Return why a pod is where it is, as the gateway says it."""
        found: Object = await self.get(f"decisions/{NAMESPACE}/{name}")
        return found

    async def shadow(self, profile: str) -> Object:
        """Return what is known about the shadow of a profile."""
        profiles: list[Object] = (await self.get("shadow"))["profiles"]
        return next(each for each in profiles if each["profile"] == profile)

    async def was_tried(self, name: str, *, times: int) -> bool:
        """Whether so many attempts on a pod have got their verdicts: one is kept from its begin."""
        return sum("filter" in each for each in await self.decisions(name)) >= times

    # ---- all the rest

    async def until(
        self, condition: Callable[[], Awaitable[bool]], patience: float = PATIENCE
    ) -> None:
        """Wait until a condition holds."""
        await until(condition, patience)

    async def empty(self) -> None:
        """Remove all pods and nodes, whatever of Moorage runs."""
        now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        for obj in (await self.read("/api/v1/pods"))["items"] or ():
            path = "/api/v1/namespaces/{namespace}/pods/{name}".format_map(obj["metadata"])
            (await self.request("DELETE", path, now)).check()
        (await self.request("DELETE", PATHS["Node"], now)).check()

    async def clear(self) -> None:
        """Remove what a scenario left, start what it killed, wait until the gateway has seen it."""
        self.proxy.reset()
        for program in self.services.programs.values():
            if program.running:
                program.go_on()
            else:
                await program.start()
        for obj in (await self.pods()).values():
            if obj["metadata"].get("finalizers"):
                path = f"{PODS}/{obj['metadata']['name']}"
                await self.request("PATCH", path, {"metadata": {"finalizers": None}})
        now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        # First what would make pods anew.
        for path in (*self._extra, PODS, PATHS["Node"], EVENTS):
            (await self.request("DELETE", path, now)).check()
        self._extra.clear()
        self._finished.clear()

        async def gone() -> bool:
            kept = (
                "nodes",
                "pods",
                "statefulsets.apps",
                "persistentvolumes",
                "deviceclasses.resource.k8s.io",
            )
            return not any([await self.metric("moorage_cache_size", type=t) for t in kept])

        await self.until(gone)


def profiles() -> list[str]:
    """Return the schedulerNames of all profiles of the scenarios."""
    return [profile["schedulerName"] for profile in scenarios_policy(Path())["profiles"]]


def scenarios_policy(directory: Path) -> Object:
    """Return the demonstration's policy with the scenarios' own profiles beside its own."""
    policy: Object = yaml.safe_load((ROOT / "deploy" / "demo" / "policy.yaml").read_text())
    own = (HERE / "policy.yaml").read_text().replace("DIRECTORY", str(directory))
    return {**policy, "profiles": policy["profiles"] + yaml.safe_load(own)}
