"""Runs the stand-in for kube-scheduler as a process.

python -m sandbox.scheduler --config FILE --api-server URL [--extender-url URL] [--seed N]
    [--default-scheduler] [--decisions-port PORT]
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
from sandbox.scheduler.config import DEFAULT_CONFIGURATION, DEFAULT_NAME, load_configuration
from sandbox.scheduler.cycle.decision import Decisions
from sandbox.scheduler.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """The process's options."""

    config: Path | None = setting(
        None, "The KubeSchedulerConfiguration; without one, the one that Moorage ships."
    )
    api_server: str = setting("http://127.0.0.1:8001", "Where the API server listens.")
    extender_url: str | None = setting(None, "Replaces every extender's urlPrefix.")
    seed: int | None = setting(None, "Makes ties between nodes break the same way every time.")
    default_scheduler: bool = setting(
        False,
        "Also run the scheduler that a cluster has anyway: it serves default-scheduler with "
        "in-tree plugins and calls no extender. Left out if the configuration serves that name.",
    )
    decisions_port: int | None = setting(
        None,
        "Serves `/decisions/NAMESPACE/POD` on this port of 127.0.0.1: what was decided, and why. "
        "`POST /retry` there has all pending pods tried again at once.",
        minimum=0,
        maximum=65535,
    )


SHIPPED = Path(__file__).parents[2] / "deploy" / "files" / "kube-scheduler-config.yaml"
"""In a checkout and in the wheel."""


def main(argv: Sequence[str] | None = None) -> None:
    """Schedule until SIGTERM or SIGINT."""
    settings = parse_settings(Settings, "python -m sandbox.scheduler", argv)
    asyncio.run(_schedule(settings))


async def _schedule(settings: Settings) -> None:
    with process("kube-scheduler", settings) as stop:
        configurations = [load_configuration(settings.config or SHIPPED, settings.extender_url)]
        if settings.default_scheduler and DEFAULT_NAME not in configurations[0].scheduler_names:
            configurations.append(DEFAULT_CONFIGURATION)
        # As two processes of a cluster: each has its own queue and its own view of the cluster.
        decisions = Decisions()
        schedulers = [
            Scheduler(each, settings.api_server, seed=settings.seed, decisions=decisions)
            for each in configurations
        ]
        async with (
            serving_decisions(decisions, schedulers[0].retry, settings.decisions_port),
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


async def _announce(schedulers: Sequence[Scheduler], names: Sequence[str], api_server: str) -> None:
    for scheduler in schedulers:
        await scheduler.wait_until_synced()
    facts = {
        "event": "running",
        "apiServer": api_server,
        "schedulerNames": names,
        "nodes": len(schedulers[0].cache.nodes),
        "pods": len(schedulers[0].cache.pods),
    }
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
