"""Runs the model for longer than CI does.

python -m tools.model [--machines N]; `python -m tools.mutations model` takes safeguards out.
"""

import argparse
import sys

from tools.model.search import MACHINES, search


def main() -> None:
    """Run; end with 1 if a rule is broken."""
    parser = argparse.ArgumentParser(prog="python -m tools.model", description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES, help="of 40 steps each")
    found = search(parser.parse_args().machines)
    print(
        f"{found.rule}, after {found.steps} steps and {found.seconds:.1f} s: {found.problem}"
        if found
        else "no rule broken"
    )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
