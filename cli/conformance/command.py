"""The command `moorage conformance`."""

import asyncio
import sys
from pathlib import Path
from typing import Literal

import click

from cli.shared.failures import clear_failures

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("url", required=False)
@click.option(
    "--config",
    type=FILE,
    help="A KubeSchedulerConfiguration; all of its extenders are checked, or that with the URL.",
)
@click.option(
    "--verbs",
    metavar="VERB=PATH,...",
    help="The verbs, such as filter=/filter,bind=/bind. Without it and without --config: filter,"
    " prioritize and preempt, by these names.",
)
@click.option("--bind", is_flag=True, help="Check bind too, with pods that do not exist.")
@click.option(
    "--node-cache-capable",
    type=bool,
    metavar="true|false",
    help="Whether kube-scheduler sends names, or whole nodes.  [default: true]",
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME",
    help="A node that the extender knows, for requests to be about; several times.",
)
@click.option(
    "--managed-resource",
    "resources",
    multiple=True,
    metavar="NAME",
    help="One of its managedResources; several times.",
)
@click.option("--timeout", metavar="DURATION", help="Its httpTimeout.  [default: 5s]")
@click.option(
    "--tls",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="For https://: folder with tls.crt, tls.key and ca.crt, to present and to verify.",
)
@click.option("--ca-file", type=FILE, help="For https://: ca.crt to verify the extender with.")
@click.option("--server-name", default="", help="The name in its certificate, if not the host.")
@click.option("--scheduler-name", default="", help="The schedulerName of all pods.")
@click.option(
    "--score-scale",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="The highest score that it documents; its weight must suit that.",
)
@click.option("--slow", is_flag=True, help="Also what takes minutes: idle connections.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
)
def conformance(
    url: str | None,
    config: Path | None,
    verbs: str | None,
    bind: bool,
    node_cache_capable: bool | None,
    nodes: tuple[str, ...],
    resources: tuple[str, ...],
    timeout: str | None,
    tls: Path | None,
    ca_file: Path | None,
    server_name: str,
    scheduler_name: str,
    score_scale: int,
    slow: bool,
    output: Literal["text", "json", "junit"],
) -> None:
    """Send what kube-scheduler sends to the extender at URL, and judge its answers.

    Nothing is written unless you ask for --bind. The exit code is 0 if nothing but style was
    found, 1 if kube-scheduler would be hurt, 2 if the checks could not run.
    """
    with clear_failures(code=2):
        from cli.conformance.output import show
        from cli.conformance.requests import RECORDED_NODES, Requests
        from cli.conformance.running import run_checks
        from cli.conformance.target import Options, extenders

        options = Options(
            url=url,
            config=config,
            verbs=verbs,
            bind=bind,
            node_cache_capable=node_cache_capable,
            resources=resources,
            timeout=timeout,
            tls=tls,
            ca_file=ca_file,
            server_name=server_name,
        )
        reports = [
            asyncio.run(
                run_checks(
                    Requests(
                        config=entry,
                        nodes=nodes or RECORDED_NODES,
                        scheduler_name=scheduler_name,
                        best_score=score_scale,
                    ),
                    slow=slow,
                )
            )
            for entry in extenders(options)
        ]
        show(reports, output)
    if not all(report.is_clean for report in reports):
        sys.exit(1)
