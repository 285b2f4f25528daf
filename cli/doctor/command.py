"""The command `moorage doctor`."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options
from cli.shared.output import Form, is_for_programs, output_option, write
from cli.shared.screen import Screen

if TYPE_CHECKING:
    from cli.doctor.check import Finding

STYLES = {"problem": "bold red", "warning": "yellow", "not checked": "dim", "ok": "green"}
"""Levels, the worst first, with how they are shown."""


@click.command()
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration on disk, where kube-scheduler's own is not in a ConfigMap.",
)
@click.option("--strict", is_flag=True, help="Warnings count as problems for the exit code.")
@output_option("what is ok too")
@gateway_options
def doctor(
    *,
    config: Path | None,
    strict: bool,
    output: Form,
    options: GatewayOptions,
) -> None:
    """Check a live installation, and name what to change.

    Nothing in the cluster is changed. The exit code is 1 if there is a problem, 2 if nothing could
    be checked, else 0.
    """
    with clear_failures(code=2):
        from cli.doctor.checks import report
        from cli.doctor.installation.installation import read_installation

        found = report(asyncio.run(read_installation(options, config)))
    if is_for_programs(output):
        write(found, output)
    else:
        _show(found.checks, found.counts, wide=output == "wide")
    if found.counts["problem"] or (strict and found.counts["warning"]):
        sys.exit(1)


def _show(found: "Sequence[Finding]", counts: Mapping[str, int], *, wide: bool) -> None:
    """Write findings in words, the worst first; what is ok if it is *wide*."""
    screen = Screen()
    unchecked: dict[str, list[str]] = {}
    for level in STYLES:
        for each in found:
            if each.level == "not checked" == level:
                unchecked.setdefault(each.evidence, []).append(each.check)
            elif each.level == level and (wide or each.change):
                screen.sentence(f"{level}: {each.check}: {each.evidence}", STYLES[level])
                if each.change:
                    screen.sentence(f"  to do: {each.change}")
    for reason, names in unchecked.items():
        screen.sentence(f"not checked: {', '.join(names)}: {reason}", STYLES["not checked"])
    hint = "" if wide or not counts["ok"] else " (-o wide lists these)"
    shown = ", ".join(_counted(count, level) for level, count in counts.items() if count)
    screen.sentence(f"{shown}{hint}", "bold")


def _counted(count: int, level: str) -> str:
    return (
        f"{count} {level}s" if count > 1 and level in ("problem", "warning") else f"{count} {level}"
    )
