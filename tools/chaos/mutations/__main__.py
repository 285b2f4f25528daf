"""Takes out one safeguard after another, and shows that the campaign fails without it.

python -m tools.chaos.mutations [--only TEXT] [--seed N] [--rounds N]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.chaos.mutations.edits import copy_tree
from tools.chaos.mutations.mutations import MUTATIONS, Mutation


def main() -> None:
    """Run all mutations; end with 1 if the campaign passes with one."""
    parser = argparse.ArgumentParser(prog="python -m tools.chaos.mutations", description=__doc__)
    parser.add_argument("--only", default="", help="only safeguards that match this expression")
    parser.add_argument("--seed", type=int, default=17, help="what the schedules are drawn from")
    parser.add_argument("--rounds", type=int, default=6, help="rounds until a mutation must show")
    options = parser.parse_args()
    undetected = 0
    for mutation in MUTATIONS:
        if not re.search(options.only, mutation.safeguard):
            continue
        print(f"without {mutation.safeguard}", flush=True)
        found = _run(mutation, options.seed, options.rounds)
        print(*(f"    {line}" for line in found or ["NOT DETECTED"]), sep="\n", flush=True)
        undetected += not found
    sys.exit(bool(undetected))


def _run(mutation: Mutation, seed: int, rounds: int) -> list[str]:
    """Return what the campaign finds in a copy of the tree with the mutation."""
    with tempfile.TemporaryDirectory(prefix="moorage-mutation-") as directory:
        root = Path(directory) / "moorage"
        copy_tree(root)
        for edit in mutation.edits:
            edit.apply(root)
        run = subprocess.run(
            [
                *(sys.executable, "-m", "tools.chaos", "--fail-fast"),
                *(f"--seed={seed}", f"--rounds={rounds}", f"--only={mutation.row}"),
            ],
            cwd=root,
            env={**os.environ, "PYTHONPATH": f"{root}:{root / 'sdk'}"},
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode and "\nround " not in run.stdout:
        sys.exit(f"the campaign does not run:\n{run.stderr}")
    return list(_findings(run.stdout))


def _findings(output: str) -> Iterator[str]:
    """Yield the round that failed, with its first findings and what was injected."""
    _, _, failure = output.partition("\nround ")
    for line in failure.splitlines()[:5]:
        yield line.strip()


if __name__ == "__main__":
    main()
