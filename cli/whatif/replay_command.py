"""The commands `moorage replay` and `moorage journal show`."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import FILE
from cli.shared.output import Form, is_for_programs, output_option, write

PATH = click.Path(exists=True, path_type=Path)

CHANGED = 1
"""Exit code: something would have been decided otherwise."""

FAILED = 2
"""Exit code: the journal cannot be replayed; also that of wrong options."""


@click.command()
@click.argument("journal", type=PATH)
@click.option("--config", type=FILE, help="The policy to try. Without it: the recorded one.")
@click.option(
    "--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder with plugins."
)
@click.option(
    "--examples", type=click.IntRange(0, 1000), default=5, show_default=True, help="Of each class."
)
@output_option("every reason, example and node")
def replay(
    journal: Path,
    config: Path | None,
    plugins: tuple[Path, ...],
    examples: int,
    output: Form,
) -> None:
    """Decide the cycles of a gateway's JOURNAL again, and show what changes.

    JOURNAL is the folder of --journal, or one of its files. Another policy (--config), or other
    code of a plugin (--plugin), is compared with what was recorded. With neither, nothing should
    change.

    The exit code is 0 if nothing changes, 1 if something does, 2 if the journal cannot be replayed.
    """
    with _failures():
        from cli.config.policies import load_registries, resolve_file, unused_plugins
        from cli.shared.screen import Screen
        from cli.whatif.engines import filtered, scored
        from cli.whatif.replay_output import show as show_report
        from gateway.whatif.replay import Engines, Replay

        registries, notes = load_registries(plugins), []
        policy = resolve_file(config, registries) if config else None
        if policy is not None:
            unused = unused_plugins(policy, registries)
            notes = [*policy.warnings, *(f"plugin {each}" for each in unused)]
        engines = Engines(registries=registries, filter=filtered, score=scored)
        work, screen = Replay(journal, engines, examples=examples), Screen()
        with ExitStack() as stack:
            progress: Callable[[int], None] = lambda _: None  # noqa: E731
            if not is_for_programs(output):
                progress = stack.enter_context(screen.progress("cycles", work.total))
            report = asyncio.run(work.run(policy, progress))
        report.notes[:0] = notes
        if is_for_programs(output):
            write(report, output)
        else:
            show_report(report, screen, wide=output == "wide")
    sys.exit(CHANGED if report.is_changed or report.not_reproducible else 0)


@click.group()
def journal() -> None:
    """Look into the journal of a gateway."""


@journal.command("show")
@click.argument("journal", type=PATH)
@click.option("--pod", default="", metavar="NAMESPACE/POD", help="Only cycles of this pod.")
@click.option(
    "--cycles",
    type=click.IntRange(0, 100_000),
    default=20,
    show_default=True,
    help="How many cycles to show, the newest.",
)
@output_option("all of the best nodes")
def show_journal(journal: Path, pod: str, cycles: int, output: Form) -> None:
    """List the segments of JOURNAL, and its newest cycles."""
    with clear_failures():
        from cli.shared.screen import Screen
        from cli.whatif.journal import read, show

        found = read(journal, pod, cycles)
        if is_for_programs(output):
            write(found, output)
        else:
            show(found, Screen(), wide=output == "wide")


@contextmanager
def _failures() -> Iterator[None]:
    try:
        with clear_failures():
            yield
    except SystemExit:
        sys.exit(FAILED)
