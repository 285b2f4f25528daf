"""The command `moorage certs`."""

from pathlib import Path

import click

from cli.shared.failures import clear_failures
from cli.shared.output import echo

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option(
    "--dir",
    "root",
    type=FOLDER,
    default=Path("certs"),
    show_default=True,
    help="Where the certificates are, or go.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=7,
    show_default=True,
    help="For how long certificates are valid.",
)
@click.option(
    "--secrets",
    "namespace",
    metavar="NAMESPACE",
    help="Print Secrets of this namespace too, for `kubectl apply -f -`. They hold the keys.",
)
def certs(root: Path, days: int, namespace: str | None) -> None:
    """Make certificates for development: an authority, and a folder for each process and person.

    Each folder is what --tls takes. Run again, it renews certificates of which less than a third
    of their life is left, and leaves the others and the authority as they are. Processes notice
    without a restart. Keep the folder ca/ to yourself: its key makes certificates of any name.
    Without that folder another authority is made, and all certificates.
    """
    with clear_failures():
        from datetime import timedelta

        from cli.certs.certificates import keep_certificates, secrets

        done = keep_certificates(root, namespace=namespace or "moorage", life=timedelta(days=days))
        for folder, is_written in done.items():
            what = "written" if is_written else "kept, it is valid for long enough"
            echo(f"{root / folder}: {what}", err=True)
        if namespace:
            echo(secrets(root, namespace), nl=False)
