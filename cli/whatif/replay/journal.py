"""The commands `moorage journal ...`."""

import sys
from pathlib import Path

import click

from cli.shared.failures import clear_failures

JOURNAL = click.Path(exists=True, path_type=Path)
PATH = click.Path(exists=True, path_type=Path)
TEST = click.Path(dir_okay=False, path_type=Path)


@click.group()
def journal() -> None:
    """Look into the journal of a gateway, and make tests of it."""


@journal.command()
@click.argument("journal", type=JOURNAL)
@click.option("--pod", default="", metavar="NAMESPACE/POD", help="Only cycles of this pod.")
@click.option(
    "--cycles",
    type=click.IntRange(0, 100_000),
    default=20,
    show_default=True,
    help="How many cycles to show, the newest.",
)
def show(journal: Path, pod: str, cycles: int) -> None:
    """List the segments of JOURNAL, and its newest cycles."""
    with clear_failures():
        from cli.shared.screen import Screen
        from cli.whatif.replay.showing import show as write

        write(journal, pod, cycles, Screen())


@journal.command("to-test")
@click.argument("journal", type=JOURNAL)
@click.option("--pod", required=True, metavar="NAMESPACE/POD", help="The pod.")
@click.option(
    "--attempt", type=int, help="Which of its attempts in the journal, from 1; else the last."
)
@click.option("--expect-feasible", metavar="NODE", help="The node should not have been rejected.")
@click.option("--expect-rejected", metavar="NODE", help="The node should have been rejected.")
@click.option("--expect-node", metavar="NODE", help="The node should have been the best one.")
@click.option(
    "--plugin", default="", metavar="NAME", help="The plugin to blame. Else the one that decided."
)
@click.option(
    "--plugin-path", "paths", type=PATH, multiple=True, help="A Python file or folder with plugins."
)
@click.option("-o", "--output", type=TEST, help="The file to write. Else the test is printed.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def to_test(
    journal: Path,
    pod: str,
    attempt: int | None,
    expect_feasible: str | None,
    expect_rejected: str | None,
    expect_node: str | None,
    plugin: str,
    paths: tuple[Path, ...],
    output: Path | None,
    force: bool,
) -> None:
    """Turn a cycle of JOURNAL into a pytest file that fails until the plugin is mended.

    State with one --expect option what should have been decided. The file needs nothing but
    Moorage and the plugin: it has the pod, and only those nodes and pods on which the wrong answer
    depends.
    """
    from cli.whatif.replay.to_test.expectation import Wish

    given: dict[Wish, str | None] = {
        "feasible": expect_feasible,
        "rejected": expect_rejected,
        "node": expect_node,
    }
    wishes = [(wish, node) for wish, node in given.items() if node]
    if len(wishes) != 1:
        raise click.UsageError(
            "state what should have been decided with one of --expect-feasible NODE, "
            "--expect-rejected NODE, --expect-node NODE; moorage journal show has the cycles"
        )
    if output is not None and output.exists() and not force:
        raise click.UsageError(f"{output} exists; --force overwrites it")
    with clear_failures():
        from cli.whatif.replay.to_test.making import make_test

        folder = output.parent if output else Path()
        made = make_test(journal, pod, attempt, wishes[0], plugin, paths, folder)
    if output is None:
        click.echo(made.text, nl=False)
    else:
        output.write_text(made.text)
        click.echo(f"{output}: {made.sentence}")
        click.echo(f"Run it: {Path(sys.executable)} -m pytest {output}")
    if not made.fails:
        click.echo(
            "Note: it does not fail here: the plugin's code may be other than recorded, or what it "
            "read is not in the journal",
            err=True,
        )
