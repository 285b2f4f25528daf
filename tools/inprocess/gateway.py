"""A gateway in this process, with real services and an API server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from prometheus_client import CollectorRegistry

from cli.up.processes import free_ports
from gateway.app import running
from gateway.settings import GatewaySettings
from moorage import FilterPlugin, ScorePlugin
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.serve import ServerSettings
from moorage_host.rpc.serve import running as serving
from moorage_host.rpc.settings import CycleSettings
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.security import client_context
from sandbox.apiserver import ApiServer, Fault
from services.binder.servicer import binder_service as binder_definition
from services.binder.settings import BinderSettings
from services.filter.plugins import BUILT_INS as FILTERS
from services.filter.servicer import FilterServicer
from services.filter.servicer import filter_service as filter_definition
from services.scorer.plugins import BUILT_INS as SCORERS
from services.scorer.servicer import ScorerServicer
from services.scorer.servicer import scorer_service as scorer_definition
from tools.inprocess.api import Api, Object
from tools.waiting import until

IN_TREE = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: InTree}]}}
"""
"""A policy with kube-scheduler's own plugins, which tests without plugins of their own use."""

SETTINGS = ServerSettings(
    host="127.0.0.1",
    port=0,
    admin_host="127.0.0.1",
    admin_port=0,
    shutdown_delay=0,
    shutdown_grace=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A running gateway, as kube-scheduler and people see it."""

    url: str
    admin: str
    api: Api
    session: aiohttp.ClientSession
    registry: CollectorRegistry

    async def call(self, verb: str, body: Any) -> tuple[int, Any]:
        """Call the extender; return the status and the decoded answer."""
        async with self.session.post(f"{self.url}/{verb}", json=body) as response:
            text = await response.read()
            return response.status, await response.json(content_type=None) if text else None

    async def filter(self, pod: Any, *names: str) -> Any:
        """Call the filter verb."""
        status, answer = await self.call("filter", {"Pod": pod, "NodeNames": names})
        assert status == 200
        return answer

    async def prioritize(self, pod: Any, *names: str) -> Any:
        """Call the prioritize verb."""
        status, answer = await self.call("prioritize", {"Pod": pod, "NodeNames": names})
        assert status == 200
        return answer

    async def get(self, path: str) -> tuple[int, Any]:
        """Ask the admin port."""
        async with self.session.get(f"{self.admin}{path}") as response:
            return response.status, await response.json()

    async def node(self, *names: str) -> None:
        """Create nodes, and wait until the gateway knows them."""
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        for name in names:
            obj = {"metadata": {"name": name}, "status": {"allocatable": amounts}}
            self.api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **obj})
        await until(lambda: self.sample("moorage_cache_size", type="nodes") >= len(names))

    def sample(self, name: str, **labels: str) -> float:
        """Return a sample of a metric, 0 if there is none."""
        # Tests wait for samples: only what has this one is asked.
        families = self.registry.restricted_registry([name]).collect()
        found = (each for family in families for each in family.samples)
        return next((each.value for each in found if each.labels == labels), 0.0)


Options = dict[str, Any]
"""Arguments by name."""

Gate = Callable[[Any], Awaitable[bool]]
"""Sees each request of a session before the service does; False ends the session."""


ServicerT = TypeVar("ServicerT", FilterServicer, ScorerServicer)


def gated(servicer: ServicerT, gate: Gate) -> ServicerT:
    """Return a service that a test can slow down and stop."""
    session: Any = servicer.Session

    async def opened(request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for answer in session(_gated(request_iterator, gate), context):
            yield answer

    servicer.Session = opened  # type: ignore[method-assign]
    return servicer


async def _gated(requests: AsyncIterator[Any], gate: Gate) -> AsyncIterator[Any]:
    async for request in requests:
        if not await gate(request):
            return
        yield request


async def is_open(_: Any) -> bool:
    """Let everything through."""
    return True


class Held:
    """A gate that keeps cycles, or those of one profile, until it is opened, if ever."""

    def __init__(self, profile: str = "") -> None:
        self.opened = asyncio.Event()
        self.came: list[Any] = []
        self._profile = profile

    async def __call__(self, request: Any) -> bool:
        """Note a cycle, and wait."""
        if request.HasField("cycle") and self._profile in ("", request.cycle.profile):
            self.came.append(request)
            await self.opened.wait()
        return True


@asynccontextmanager
async def filter_service(
    *plugins: type[FilterPlugin],
    host: str = "127.0.0.1",
    port: int = 0,
    gate: Gate = is_open,
    tls: Path | None = None,
) -> AsyncIterator[str]:
    """Run a real filter service with the built-in plugins and more; give its address."""
    registry = Registry(FilterPlugin, (*FILTERS, *plugins))
    definition = replace(
        filter_definition(CycleSettings(), registry),
        create=lambda: gated(FilterServicer(registry), gate),
        limit=None,
    )
    async with serving(definition, replace(SETTINGS, host=host, port=port, tls=tls)) as server:
        yield server.grpc


@asynccontextmanager
async def scorer_service(
    *plugins: type[ScorePlugin],
    port: int = 0,
    gate: Gate = is_open,
    grace: float = 0,
    tls: Path | None = None,
) -> AsyncIterator[str]:
    """Run a real scorer service with the built-in plugins and more; give its address."""
    registry = Registry(ScorePlugin, (*SCORERS, *plugins))
    definition = replace(
        scorer_definition(CycleSettings(), registry),
        create=lambda: gated(ScorerServicer(registry), gate),
        limit=None,
    )
    settings = replace(SETTINGS, port=port, shutdown_grace=grace, tls=tls)
    async with serving(definition, settings) as server:
        yield server.grpc


@asynccontextmanager
async def binder_service(
    directory: Path, *plugins: Path, port: int, grace: float = 0, **more: Any
) -> AsyncIterator[None]:
    """Run a real binder on the API server of the gateway that runs in *directory*."""
    settings = BinderSettings(
        host="127.0.0.1",
        port=port,
        admin_host="127.0.0.1",
        admin_port=0,
        shutdown_delay=0,
        shutdown_grace=grace,
        kubeconfig=directory / "kubeconfig",
        plugin=plugins,
        **more,
    )
    async with serving(binder_definition(settings), settings):
        yield


@asynccontextmanager
async def gateway(
    directory: Path,
    *,
    filters: str | Sequence[str] = "127.0.0.1:1",
    scorer: str | Sequence[str] = "127.0.0.1:1",
    binder: str = "127.0.0.1:1",
    fault: Fault | None = None,
    server: ApiServer | None = None,
    **more: Any,
) -> AsyncIterator[Gateway]:
    """Run a gateway on an API server, one of its own by default; wait until it has read it.

    Without a *config* its policy enables the in-tree plugins. With a *fault* it does not wait.
    """
    # Most tests are about asking replicas.
    usual: dict[str, Any] = {
        "cache_bytes": 0,
        "config": directory / "in-tree.yaml",
        "barrier_timeout": 0.05,  # most have no binder
        "shutdown_delay": 0,
        "http_drain_time": 0,
    }
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(ApiServer()) if server is None else server
        if fault is not None:
            api.faults.add(fault)
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        (directory / "in-tree.yaml").write_text(IN_TREE)
        registry = CollectorRegistry(support_collectors_without_names=True)
        settings = GatewaySettings(
            extender_host="127.0.0.1",
            extender_port=0,
            admin_host="127.0.0.1",
            admin_port=0,
            filter=(filters,) if isinstance(filters, str) else tuple(filters),
            scorer=(scorer,) if isinstance(scorer, str) else tuple(scorer),
            binder=binder,
            kubeconfig=kubeconfig,
            **usual | more,
        )
        process = await stack.enter_async_context(running(settings, registry))
        session = await stack.enter_async_context(_client(settings.tls))
        scheme = "https" if settings.tls else "http"
        running_gateway = Gateway(
            url=f"{scheme}://{process.extender}",
            admin=f"{scheme}://{process.admin}",
            api=Api(api),
            session=session,
            registry=registry,
        )
        if fault is None:
            await until(  # however long ago: this process may have been busy
                lambda: running_gateway.sample("moorage_cache_age_seconds", resource="pods") < inf
            )
        yield running_gateway


@asynccontextmanager
async def plane(
    directory: Path,
    *plugins: type[FilterPlugin] | type[ScorePlugin],
    policy: str = IN_TREE,
    nodes: Sequence[str] = (),
    filters: str | Sequence[str] | None = None,
    scorer: str | Sequence[str] | None = None,
    filter_gates: Sequence[Gate] = (is_open,),
    scorer_gates: Sequence[Gate] = (is_open,),
    also: Mapping[str, str] | None = None,
    binder: bool | str | Options = False,
    port: int = 0,
    waits: bool = True,
    **more: Any,
) -> AsyncIterator[Gateway]:
    """Run a gateway and replicas with these plugins too: one for each gate.

    But for *filters* and *scorer* whose addresses are given. It looks for replicas at further
    addresses *also*: of `filters`, of `scorer`. A *binder* runs as well if it is True or options
    for it: before the gateway, which would wait a second for one that comes later. It *waits*
    until the gateway knows the nodes, and all replicas answer.
    """
    filtering: list[Any] = [kind for kind in plugins if issubclass(kind, FilterPlugin)]
    scoring: list[Any] = [kind for kind in plugins if issubclass(kind, ScorePlugin)]
    (directory / "policy.yaml").write_text(policy)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        if filters is None:
            filters = [await enter(filter_service(*filtering, gate=each)) for each in filter_gates]
        if scorer is None:
            scorer = [await enter(scorer_service(*scoring, gate=each)) for each in scorer_gates]
        if isinstance(binder, str):
            more["binder"] = binder
        elif binder:
            port = port or free_ports(1)[0]
            more |= {"binder": f"127.0.0.1:{port}", "server": await enter(ApiServer())}
            (directory / "kubeconfig").write_text(more["server"].kubeconfig())
            given: Options = {} if binder is True else dict(binder)
            await enter(binder_service(directory, *given.pop("plugin", ()), port=port, **given))
        options: dict[str, Any] = {"filters": filters, "scorer": scorer}
        for service, address in (also or {}).items():
            options[service] = [*options[service], address]
        config = directory / "policy.yaml"
        process = await enter(gateway(directory, **{"config": config, **options, **more}))
        await process.node(*nodes)
        if waits:
            await ready(process)
            for service, replicas in (("filter", filters), ("scorer", scorer)):
                if not isinstance(replicas, str):
                    await replicas_are(process, service, len(replicas))
        yield process


async def replicas_are(process: Gateway, service: str, count: int) -> None:
    """Wait until so many replicas of a service take part."""
    await until(lambda: process.sample("moorage_replicas_ready", service=service) == count)


def policy_of(plugins: str, config: str = "", profile: str = "moorage") -> str:
    """Write a policy of one profile, with `plugins` and `pluginConfig` in YAML's short form."""
    return (
        "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nscoreScale: 100\nprofiles:\n"
        f"- {{schedulerName: {profile}, plugins: {plugins}, pluginConfig: [{config}]}}\n"
    )


def _client(tls: Path | None) -> aiohttp.ClientSession:
    """Return a client that shows the gateway's own certificate, if it has one."""
    context = client_context(read_certificate(tls)) if tls else True
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))


async def ready(running_gateway: Gateway) -> None:
    """Wait until the gateway answers cycles."""

    async def answers() -> bool:
        return (await running_gateway.get("/readyz"))[0] == 200

    await until(answers)


async def bind(running_gateway: Gateway, obj: Object, node: str = "n1") -> str:
    """Call the bind verb; return the error."""
    metadata = obj["metadata"]
    body = {
        "PodName": metadata["name"],
        "PodNamespace": metadata["namespace"],
        "PodUID": metadata["uid"],
        "Node": node,
    }
    status, answer = await running_gateway.call("bind", body)
    assert status == 200
    return str(answer["Error"])


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    """Build a pod as kube-scheduler sends it."""
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"schedulerName": "moorage", "containers": [{"name": "c"}], **spec},
    }
