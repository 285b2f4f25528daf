"""The command `moorage conformance`."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import FILE
from moorage.errors import ConfigurationError


@click.command()
@click.argument("url", required=False)
@click.option(
    "--config",
    type=FILE,
    help="A KubeSchedulerConfiguration: check its extender, or of several the one with URL. "
    "Without it nodeCacheCapable is true and httpTimeout 5s.",
)
@click.option(
    "--verbs",
    metavar="VERB=PATH,...",
    help="The verbs, such as filter=/filter,bind=/bind. Without it and without --config: filter,"
    " prioritize and preempt, by these names.",
)
@click.option("--bind", is_flag=True, help="Check bind too, with pods that do not exist.")
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME",
    help="A node that the extender knows, to ask about; repeatable.",
)
@click.option(
    "--tls",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="For https://: folder with tls.crt, tls.key and ca.crt, to present and to verify.",
)
@click.option("--scheduler-name", default="", help="The schedulerName of all pods.")
@click.option(
    "--score-scale",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="The highest score that it documents; its weight must suit that.",
)
@click.option("--slow", is_flag=True, help="Also run checks that take minutes (idle connections).")
@click.option(
    "-k",
    "select",
    metavar="EXPRESSION",
    help="Run only checks whose names match, as pytest's -k.",
)
@click.option("-v", "--verbose", is_flag=True, help="A line for each check.")
@click.option(
    "--junitxml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a JUnit XML report to FILE.",
)
def conformance(**given: Any) -> None:
    """Send what kube-scheduler sends to the extender at URL, and judge its answers.

    Nothing is written unless you ask for --bind. The exit code is 0 if there are warnings at most,
    1 if kube-scheduler would be hurt, 2 if the checks could not run.
    """
    with clear_failures(code=2):
        try:
            from cli.conformance.kit import kit_of
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                "the checks are tests of pytest: install it with `pip install '.[testing]'` in a "
                "clone"
            ) from error
        from cli.conformance.probe import check_reachable

        kit = kit_of(given)
        asyncio.run(check_reachable(kit.requests.config))
        arguments = [
            *(("-k", given["select"]) if given["select"] else ()),
            *(("-v",) if given["verbose"] else ()),
            *((f"--junitxml={given['junitxml']}",) if given["junitxml"] else ()),
        ]
        sys.exit(kit.run(*arguments))
