"""Runs the stand-in for kube-scheduler as a process.

python -m sandbox.scheduler --config FILE --api-server URL [--extender-url URL] [--seed N]
    [--default-scheduler] [--decisions-port PORT]
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from aiohttp import web

from moorage_host.kube_scheduler import DEFAULT_CONFIGURATION, DEFAULT_NAME, load_configuration
from moorage_host.process.admin import admin_server
from moorage_host.process.lifecycle import AdminSettings, ProcessSettings, announce, process
from moorage_host.settings import parse_settings, setting
from sandbox import SHIPPED
from sandbox.scheduler.decisions import Decisions
from sandbox.scheduler.scheduler import StandInScheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings(ProcessSettings):
    """The process's options."""

    log_repeats: int = 1_000_000
    """Each call that failed is a line: tests and the campaign count them."""
    config: Path | None = setting(
        None, "The KubeSchedulerConfiguration; by default the shipped one."
    )
    api_server: str = setting("http://127.0.0.1:8001", "Where the API server listens.")
    extender_url: str | None = setting(None, "Replaces every extender's urlPrefix.")
    seed: int | None = setting(None, "Makes ties between nodes break the same way every time.")
    default_scheduler: bool = setting(
        False,
        "Also serve default-scheduler with in-tree plugins, without extenders, unless the "
        "configuration does.",
    )
    decisions_port: int | None = setting(
        None,
        "Serves `/decisions/NAMESPACE/POD` and `POST /retry` (retry all pending pods) on this "
        "port of 127.0.0.1.",
        minimum=0,
        maximum=65535,
    )


def main() -> None:
    """Schedule until SIGTERM or SIGINT."""
    settings = parse_settings(SchedulerSettings, "python -m moorage_apps sandbox.scheduler")
    asyncio.run(_schedule(settings))


async def _schedule(settings: SchedulerSettings) -> None:
    with process("kube-scheduler", settings) as stop:
        configurations = [load_configuration(settings.config or SHIPPED, settings.extender_url)]
        if settings.default_scheduler and DEFAULT_NAME not in configurations[0].scheduler_names:
            configurations.append(DEFAULT_CONFIGURATION)
        # As two processes of a cluster: each has its own queue and its own view of the cluster.
        decisions: Decisions = OrderedDict()
        schedulers = [
            StandInScheduler(each, settings.api_server, seed=settings.seed, decisions=decisions)
            for each in configurations
        ]
        async with (
            _serving_decisions(decisions, schedulers[0].retry, settings.decisions_port),
            asyncio.TaskGroup() as group,
        ):
            names = [name for each in configurations for name in each.scheduler_names]
            announcing = group.create_task(_announce(schedulers, names, settings.api_server))
            running = [group.create_task(scheduler.run()) for scheduler in schedulers]
            await stop.wait()
            for scheduler in schedulers:
                scheduler.stop()
            await asyncio.wait(running)
            announcing.cancel()


async def _announce(
    schedulers: Sequence[StandInScheduler], names: Sequence[str], api_server: str
) -> None:
    for scheduler in schedulers:
        await scheduler.wait_until_synced()
    cache = schedulers[0].cache
    counts = {"nodes": len(cache.nodes), "pods": len(cache.pods)}
    announce("running", apiServer=api_server, schedulerNames=names, **counts)


@asynccontextmanager
async def _serving_decisions(
    decisions: Decisions, retry: Callable[[], int], port: int | None
) -> AsyncIterator[None]:
    """Serve `/decisions/NAMESPACE/POD` and `/retry` for as long as the block lasts.

    Args:
        decisions: What is served.
        retry: Has all pending pods tried again; returns how many there are.
        port: The port; without one nothing is served.

    Raises:
        ConfigurationError: The port cannot be listened on.
    """
    if port is None:
        yield
        return

    async def show(request: web.Request) -> web.Response:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        decision = decisions.get((namespace, pod))
        if decision is None:
            message = f"there is no decision about {namespace}/{pod}"
            return web.json_response({"error": message}, status=404)
        return web.Response(body=msgspec.json.encode(decision), content_type="application/json")

    async def try_again(_: web.Request) -> web.Response:
        return web.json_response({"pods": retry()})

    routes = [web.get("/decisions/{namespace}/{pod}", show), web.post("/retry", try_again)]
    settings = AdminSettings(admin_host="127.0.0.1", admin_port=port)
    async with admin_server(settings, checks={}, routes=routes):
        yield


if __name__ == "__main__":
    main()
