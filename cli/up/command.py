"""The command `moorage up`."""

import signal
import sys
from pathlib import Path
from typing import Any

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import FILE
from cli.shared.given import plugins_option
from cli.shared.interrupts import leave_at

PORT = click.IntRange(0, 65535)


@click.command()
@click.option(
    "--nodes",
    metavar="N|FILE",
    help="Nodes: how many, of 8 CPUs and 32Gi each, or a file.  [default: 3]",
)
@click.option("--pods", metavar="N|FILE", help="Pods: how many, or a file.  [default: 0]")
@click.option(
    "--scorers",
    default=1,
    type=click.IntRange(1, 64),
    show_default=True,
    help="How many scorer replicas to run.",
)
@click.option(
    "--filters",
    default=1,
    type=click.IntRange(1, 64),
    show_default=True,
    help="How many filter replicas to run; of several, each is asked about a part of the nodes.",
)
@click.option("--config", type=FILE, help="The policy (MoorageConfiguration).")
@plugins_option
@click.option("--kubeconfig", type=FILE, help="Serve this cluster instead of an embedded one.")
@click.option(
    "--capacity",
    type=click.Choice(["karpenter", "cluster-autoscaler"]),
    help="With --kubeconfig: ask this autoscaler for nodes, as `moorage capacity` does.",
)
@click.option(
    "--kubeconfig-out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the embedded cluster's kubeconfig goes, until the end.  "
    "[default: moorage/kubeconfig in XDG_RUNTIME_DIR, else in ~/.local/state]",
)
@click.option("--once", is_flag=True, help="End with the result once all pods are decided on.")
@click.option("--extender-port", default=0, type=PORT, help="The extender's port; 0: a free one.")
@click.option("--admin-port", default=0, type=PORT, help="The admin port; 0: a free one.")
def up(**given: Any) -> None:
    """Start every process, schedule the pods, and show where each went and why.

    FILE holds manifests in YAML, or what `kubectl get nodes,pods,priorityclasses -A -o json` (or
    yaml) prints of a real cluster; pods that were bound there stay bound. A file given for nodes
    brings its pods too and the other way round, unless --pods or --nodes is given; pods that are
    bound in the nodes' file always come with their nodes.

    Plugin files are loaded again when they change, without --once.

    Exit codes: with --once 0 when every pod is bound or suits no node, 1 when scheduling fails or
    takes too long; 130 after Ctrl-C, SIGTERM or a closed terminal before the result, which shows
    what was decided.
    """
    if given["kubeconfig"] and any(given[k] for k in ("nodes", "pods", "once", "kubeconfig_out")):
        raise click.UsageError(
            "--kubeconfig serves a cluster as it is: leave out --nodes, --pods, --once, "
            "--kubeconfig-out"
        )
    if given["capacity"] and not given["kubeconfig"]:
        raise click.UsageError("--capacity needs --kubeconfig: the embedded cluster has none")
    leave_at(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # until the loop has them
    with clear_failures():
        from cli.up.run import UpOptions
        from cli.up.run import up as run

        sys.exit(run(UpOptions(**given)))
