"""Builds the image as an OCI layout: `make image`."""

import os
import sys
from pathlib import Path

import click

from deploy.metadata import HOME
from tools.image.build import ROOT, BuildError, Layout, build


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "dist" / "image")
@click.option("--python-image", default="", help="The base, instead of one of Debian's packages.")
def main(out: Path, python_image: str) -> None:
    """Build the image of deploy/Dockerfile into an OCI layout, without a container engine."""
    try:
        build(out, python_image=python_image, home=os.environ.get(HOME, "").rstrip("/"))
    except BuildError as error:
        sys.exit(f"make image: {error}")
    layout = Layout(out)
    click.echo(f"{out}: {layout.digest}, {layout.compressed / 1e6:.0f} MB compressed")
    click.echo(f"Push it with: skopeo copy oci:{out}:moorage docker://REGISTRY/moorage:TAG")


if __name__ == "__main__":
    main()
