"""The command `moorage simulate`."""

from pathlib import Path

import click

from cli.shared.failures import clear_failures
from cli.shared.given import GivenPlugin, GivenPluginType, weights_of

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--cluster",
    metavar="DUMP",
    type=FILE,
    help="The cluster: what `kubectl get nodes,pods -A -o json` (or yaml) prints.",
)
@click.option("--kubeconfig", type=FILE, help="Read the cluster of this kubeconfig instead.")
@click.option("--pods", type=FILE, required=True, help="The pods to place.")
@click.option(
    "--count",
    type=click.IntRange(1, 1_000_000),
    help="Place each pod so many times, as NAME-0, NAME-1 ...",
)
@click.option(
    "--config",
    "configs",
    type=FILE,
    multiple=True,
    help="The policy; given twice, two are compared.  [default: in-tree plugins alone]",
)
@click.option(
    "--plugin",
    "plugins",
    type=GivenPluginType(),
    multiple=True,
    help="A Python file or folder with plugins; repeatable. Without --config they are enabled, "
    "with =WEIGHT score plugins with this weight.",
)
@click.option(
    "--scheduler-config",
    type=FILE,
    help="The KubeSchedulerConfiguration, with one extender.  [default: the shipped one]",
)
@click.option(
    "--seed", default=0, type=int, show_default=True, help="Decides between equally good nodes."
)
@click.option(
    "--rows",
    default=20,
    type=click.IntRange(0),
    show_default=True,
    help="Pods in each table; 0 shows all.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json has every placement.",
)
def simulate(
    cluster: Path | None,
    kubeconfig: Path | None,
    pods: Path,
    count: int | None,
    configs: tuple[Path, ...],
    plugins: tuple[GivenPlugin, ...],
    scheduler_config: Path | None,
    seed: int,
    rows: int,
    output: str,
) -> None:
    """Place pods in a copy of a cluster, and compare what two policies make of them.

    Nothing is written to the cluster, and no process is started. Pods that the cluster has under
    the same names are placed again; other pods stay where they are.
    """
    if (cluster is None) == (kubeconfig is None):
        raise click.UsageError("give the cluster: either --cluster DUMP or --kubeconfig FILE")
    if len(configs) > 2:
        raise click.UsageError("--config can be given twice: two policies are compared")
    with clear_failures():
        from cli.whatif.simulate.output import as_json, show
        from cli.whatif.simulate.run import SimulateOptions
        from cli.whatif.simulate.run import simulate as run

        options = SimulateOptions(
            cluster=cluster,
            kubeconfig=kubeconfig,
            pods=pods,
            count=count,
            configs=configs,
            plugins=tuple(each.path for each in plugins),
            weights=weights_of(plugins),
            scheduler_config=scheduler_config,
            seed=seed,
        )
        result = run(options)
        if output == "json":
            click.echo(as_json(result))
        else:
            show(result, rows)
