"""Answers `GET /replicas`: who takes part, who calls, and how far each replica's state is."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from gateway.cluster.cluster import Cluster
from gateway.edge.metrics import LastCalls
from gateway.leadership import Leadership
from gateway.replicas.set import Member, ReplicaSet
from gateway.settings import GatewaySettings
from moorage import __version__
from moorage_host.process.metrics import revision
from moorage_host.tls.security import Security

BinderProblems = Callable[[], list[str]]
"""Returns what fails in the background of the binder's plugins."""


def replica_route(
    settings: GatewaySettings,
    cluster: Cluster,
    pools: Mapping[str, ReplicaSet],
    leadership: Leadership,
    last_calls: LastCalls,
    binder_problems: BinderProblems,
    security: Security,
) -> web.RouteDef:
    """Return the route of the gateway itself, its callers and its replicas."""

    def show_replica(member: Member) -> dict[str, Any]:
        session = member.session
        return {
            "place": member.place,
            "replica": session.replica,
            "moorageVersion": session.moorage_version,
            "version": session.version[:12],
            "generation": session.sent_generation,
            "behind": max(0, cluster.generation - session.sent_generation),
            "unanswered": len(member.unanswered),
            "problems": dict(session.problems),
            "plugins": [
                {"name": each.name, "version": each.version, "origin": each.origin}
                for each in session.plugins
            ],
        }

    async def show(_: web.Request) -> web.Response:
        term = leadership.term
        return web.json_response(
            {
                "moorageVersion": __version__,
                "revision": revision(),
                "gateway": {
                    "time": time.time(),
                    "httpTimeout": settings.http_timeout,
                    "extenderPort": settings.extender_port,
                    "extenderPrefix": settings.extender_prefix,
                    "schedulerIdentities": list(settings.scheduler_identity),
                    "leaderElection": settings.leader_election,
                    "leaseName": settings.lease_name,
                    "certificateNames": own.names if (own := security.certificate) else [],
                },
                "callers": last_calls.shown(),
                "generation": cluster.generation,
                "counts": dict(cluster.state.counts),
                "silentSeconds": {
                    name: round(age, 3) if age < float("inf") else None
                    for name, age in cluster.ages().items()
                },
                "term": {"epoch": term.epoch, "active": term.is_active, "problem": term.problem},
                "services": [
                    {
                        "service": name,
                        "problem": pool.problem,
                        "codeEpoch": pool.code_epoch,
                        "replicas": [show_replica(each) for each in pool.all],
                    }
                    for name, pool in pools.items()
                ],
                "binder": {
                    "place": settings.binder,
                    "moorageVersions": leadership.barriers.versions(),
                    "note": leadership.barriers.note() or "",
                    "problems": binder_problems(),
                },
            }
        )

    return web.get("/replicas", show)
