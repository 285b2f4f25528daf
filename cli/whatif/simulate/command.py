"""The command `moorage simulate`."""

from typing import Any

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import FILE
from cli.shared.given import plugins_option, scheduler_config_option
from cli.shared.output import Form, is_for_programs, output_option, write


@click.command()
@click.option(
    "--cluster",
    metavar="DUMP",
    type=FILE,
    required=True,
    help="The cluster: what `kubectl get nodes,pods,priorityclasses -A -o json` (or yaml) prints.",
)
@click.option("--pods", type=FILE, required=True, help="The pods to place.")
@click.option(
    "--count",
    type=click.IntRange(1, 1_000_000),
    help="How many copies of each pod to place, named NAME-0, NAME-1 ...",
)
@click.option(
    "--nodes",
    "more_nodes",
    metavar="+N",
    type=click.IntRange(0, 100_000),
    default=0,
    help="Compare the cluster with one that has N more empty nodes of its most common kind.",
)
@click.option(
    "--config",
    "configs",
    type=FILE,
    multiple=True,
    help="The policy; given twice, two are compared.  [default: in-tree plugins alone]",
)
@plugins_option
@scheduler_config_option
@output_option()
def simulate(*, output: Form, **given: Any) -> None:
    """Place pods in a copy of a cluster, and compare two policies, or more nodes.

    Nothing is written to the cluster, and no process is started. Pods that the cluster has under
    the same names are placed again; other pods stay where they are.
    """
    if len(given["configs"]) > 2:
        raise click.UsageError("--config can be given twice: two policies are compared")
    if given["more_nodes"] and len(given["configs"]) > 1:
        raise click.UsageError("--nodes compares without and with them: give one --config at most")
    with clear_failures():
        from cli.whatif.simulate.output import show
        from cli.whatif.simulate.run import SimulateOptions
        from cli.whatif.simulate.run import simulate as run

        result = run(SimulateOptions(**given))
        if is_for_programs(output):
            write(result, output)
        else:
            show(result)
