"""Runs the stand-in for kube-scheduler as a process.

python -m sandbox.scheduler --config FILE --api-server URL [--extender-url URL] [--seed N]
    [--decisions-port PORT]
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moorage_host.process.lifecycle import ProcessSettings, process
from moorage_host.settings import parse_settings, setting
from sandbox.scheduler.admin import serving_decisions
from sandbox.scheduler.config import Configuration, load_configuration
from sandbox.scheduler.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """The process's options."""

    config: Path = setting(
        Path("deploy/scheduler/kube-scheduler-config.yaml"), "The KubeSchedulerConfiguration."
    )
    api_server: str = setting("http://127.0.0.1:8001", "Where the API server listens.")
    extender_url: str | None = setting(None, "Replaces every extender's urlPrefix.")
    seed: int | None = setting(None, "Makes ties between nodes break the same way every time.")
    decisions_port: int | None = setting(
        None,
        "Serves `/decisions/NAMESPACE/POD` on this port of 127.0.0.1: what was decided, and why. "
        "`POST /retry` there has all pending pods tried again at once.",
        minimum=0,
        maximum=65535,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Schedule until SIGTERM or SIGINT."""
    settings = parse_settings(Settings, "python -m sandbox.scheduler", argv)
    asyncio.run(_schedule(settings))


async def _schedule(settings: Settings) -> None:
    with process("kube-scheduler", settings) as stop:
        configuration = load_configuration(settings.config, settings.extender_url)
        scheduler = Scheduler(configuration, settings.api_server, seed=settings.seed)
        async with (
            serving_decisions(scheduler, settings.decisions_port),
            asyncio.TaskGroup() as group,
        ):
            announcing = group.create_task(_announce(scheduler, configuration, settings))
            running = group.create_task(scheduler.run())
            await stop.wait()
            scheduler.stop()
            await running
            announcing.cancel()


async def _announce(scheduler: Scheduler, configuration: Configuration, settings: Settings) -> None:
    await scheduler.wait_until_synced()
    facts = {
        "event": "running",
        "apiServer": settings.api_server,
        "schedulerNames": [profile.scheduler_name for profile in configuration.profiles],
        "nodes": len(scheduler.cache.nodes),
        "pods": len(scheduler.cache.pods),
    }
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
