"""The inspector: a page on the admin port, and the routes that it asks."""

import time
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry

from gateway.binding.binders import Binders
from gateway.cluster.cluster import Cluster
from gateway.edge.last_calls import LastCalls
from gateway.inspector.assets import asset_routes
from gateway.inspector.nodes import node_routes
from gateway.inspector.policy import policy_route
from gateway.inspector.queries import bad_query
from gateway.inspector.replicas import replica_route
from gateway.inspector.timeline import Timeline
from gateway.leadership import Leadership
from gateway.policy.policy import PolicyHolder
from gateway.replicas.reload import PolicyReloader
from gateway.replicas.set import ReplicaSet
from gateway.settings import GatewaySettings
from moorage.units.durations import parse_duration
from moorage_host.tls.security import Security

INTERVALS = 720
"""Intervals of plugins' work that are kept, the newest; each takes about 0.1 kB for a plugin."""

WINDOW = 900.0
"""Seconds of plugins' work that are shown without a `since`."""


class Inspector:
    """The page, and what it asks for.

    Attributes:
        routes: Of the admin port.
        timeline: Notes what plugins do.
        last_calls: Notes who calls the extender.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        cluster: Cluster,
        policy: PolicyHolder,
        reloader: PolicyReloader | None,
        *,
        filters: ReplicaSet,
        scorers: ReplicaSet,
        binders: Binders,
        leadership: Leadership,
        registry: CollectorRegistry,
        security: Security,
    ) -> None:
        self.timeline = Timeline(registry, interval=settings.inspector_interval, kept=INTERVALS)
        self.last_calls = LastCalls()
        self.routes: list[web.RouteDef] = [
            *asset_routes(),
            *node_routes(cluster.state),
            replica_route(
                settings,
                cluster,
                {"filter": filters, "scorer": scorers},
                leadership,
                self.last_calls,
                lambda: list(binders.binding.plugin_problems()),
                security,
            ),
            policy_route(policy, reloader),
            plugin_route(self.timeline),
        ]


def plugin_route(timeline: Timeline, clock: Callable[[], float] = time.time) -> web.RouteDef:
    """Return the route of `GET /plugins?since=DURATION`."""

    async def show(request: web.Request) -> web.Response:
        since = request.query.get("since", "")
        try:
            seconds = parse_duration(since) if since else WINDOW
        except ValueError as error:
            return bad_query(ValueError(f"since: {error}"))
        response = web.json_response(timeline.since(clock() - seconds))
        response.enable_compression()
        return response

    return web.get("/plugins", show)
