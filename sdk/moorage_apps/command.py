"""The `moorage` command, as pip installs it."""

import sys
from pathlib import Path

from moorage_apps import make_importable


def main() -> None:
    """Run the command."""
    make_importable()
    from cli.main import main as run

    run(prog_name=Path(sys.argv[0]).name.replace("kubectl-", "kubectl "))
