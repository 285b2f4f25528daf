"""The `moorage` command, as pip installs it."""

import os
import sys

from moorage_apps import make_importable


def main() -> None:
    """Run the command."""
    make_importable()
    try:
        from signal import SIGINT

        from cli.shared.interrupts import leave_at, raise_again

        leave_at(SIGINT)
    except KeyboardInterrupt:
        os._exit(130)
    # numpy would start threads, which the fork server of `moorage up` must not have.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from cli.main import main as run

    raise_again()
    run(prog_name=sys.argv[0].rpartition("/")[2].replace("kubectl-", "kubectl "))


if __name__ == "__main__":
    main()
