"""The command `moorage certs`."""

from pathlib import Path

import click

from cli.shared.failures import clear_failures

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
    "--san",
    "further_names",
    metavar="NAME",
    multiple=True,
    help="A further DNS name or address of the services; repeatable.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=7,
    show_default=True,
    help="For how long certificates are valid.",
)
@click.option("--force-ca", is_flag=True, help="Make another authority, and all certificates.")
@click.option(
    "--secrets",
    "namespace",
    metavar="NAMESPACE",
    help="Print Secrets of this namespace too, for `kubectl apply -f -`. They hold the keys.",
)
def certs(
    root: Path,
    further_names: tuple[str, ...],
    days: int,
    force_ca: bool,
    namespace: str | None,
) -> None:
    """Make certificates for development: an authority, and a folder for each process and person.

    Each folder is what --tls takes. Run again, it renews certificates of which less than a third
    of their life is left, and leaves the others and the authority as they are. Processes notice
    without a restart. Keep the folder ca/ to yourself: its key makes certificates of any name.
    """
    with clear_failures():
        from datetime import timedelta

        from cli.certs.certificates import keep_certificates, secrets

        done = keep_certificates(
            root,
            namespace=namespace or "moorage",
            further_names=further_names,
            life=timedelta(days=days),
            replace_authority=force_ca,
        )
        for folder, is_written in done.items():
            what = "written" if is_written else "kept, it is valid for long enough"
            click.echo(f"{root / folder}: {what}", err=True)
        if namespace:
            click.echo(secrets(root, namespace), nl=False)
