"""The `moorage` command, as pip installs it."""

import os
import sys
from pathlib import Path

from moorage_apps import make_importable


def main() -> None:
    """Run the command."""
    # numpy would start threads, which the fork server of `moorage up` must not have.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    make_importable()
    from cli.main import main as run

    run(prog_name=Path(sys.argv[0]).name.replace("kubectl-", "kubectl "))


if __name__ == "__main__":
    main()
