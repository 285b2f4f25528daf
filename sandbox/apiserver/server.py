"""Starts and stops the API server, in this process or (`__main__`) as one of its own."""

import json
from collections.abc import Mapping
from io import FileIO
from types import MappingProxyType, TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from moorage_host.http.requests import Refusals, RequestChecks
from sandbox.apiserver import discovery, faults
from sandbox.apiserver.requests.handling import ObjectRequests, failures_as_status
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.cluster import EmbeddedCluster
from sandbox.apiserver.store.kubelet import Kubelet


class ApiServer:
    """An API server with its cluster; `async with` runs it."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.cluster = EmbeddedCluster(self.settings)
        self.faults = faults.Faults(self.cluster)
        path = self.settings.audit_log
        self._audit = FileIO(path, "a") if path else None
        self.url = ""
        """Where it listens, such as http://127.0.0.1:41234, once it does."""
        self._runner = web.AppRunner(
            self._application(),
            handler_cancellation=True,  # a watch ends when its client hangs up
            access_log=None,
            shutdown_timeout=self.settings.shutdown_seconds,
        )
        if self.settings.run_bound_pods:
            Kubelet(self.cluster.store, self.settings.run_delay_seconds)

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            OSError: The port is taken.
        """
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.settings.host, self.settings.port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the watches and the port."""
        self.faults.drop_watches()
        await self._runner.cleanup()
        if self._audit:
            self._audit.close()

    def kubeconfig(self) -> str:
        """Return a kubeconfig (as JSON, which is YAML) for kubectl; there is no authentication."""
        return json.dumps(kubeconfig(self.url), indent=2) + "\n"

    def _application(self) -> web.Application:
        application = web.Application(
            middlewares=[failures_as_status, _checking()],
            client_max_size=self.settings.max_body_bytes,
        )
        requests = ObjectRequests(self.cluster, self.faults, self.settings, self._audit)
        discovery.add_routes(application.router, self.cluster.resources, self.settings)
        faults.add_routes(application.router, self.faults)
        application.router.add_route("*", "/api/{path:.*}", requests.handle)
        application.router.add_route("*", "/apis/{path:.*}", requests.handle)
        return application


def _checking() -> Middleware:
    checks = RequestChecks((), Refusals("api-server"))

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (refusal := checks.refusal(request)) is not None:
            return refusal.response()
        return await handler(request)

    return checked


def kubeconfig(
    server: str,
    name: str = "sandbox",
    *,
    cluster: Mapping[str, Any] = MappingProxyType({}),
    user: Mapping[str, Any] = MappingProxyType({}),
    namespace: str = "",
) -> dict[str, Any]:
    """Return a kubeconfig with one context, by default without certificates and credentials.

    Args:
        server: The URL of the API server.
        name: That of the cluster, the user and the context.
        cluster: What else is known of the API server, such as its authority.
        user: The credentials.
        namespace: The context's, if it has one.
    """
    context = {"cluster": name, "user": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": dict(user)}],
        "contexts": [{"name": name, "context": context}],
    }
