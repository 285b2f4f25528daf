"""Runs the model for longer than CI does, or without one safeguard after another.

python -m tools.model [--machines N] [--mutations [--only TEXT]]
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence

import msgspec

from tools.model.search import MACHINES, Found, search
from tools.mutations import Edit, run_without

FENCE = "services/binder/binding/fence.py"

MUTATIONS: Mapping[str, Sequence[Edit]] = {
    "no check at /bind": [
        Edit(
            file="gateway/scheduling/bind_check.py",
            old="cause = self._cause(pod, call, decision, epoch) if pod is not None else None",
            new="cause = None",
        )
    ],
    "no fence at the binder": [
        Edit(file=FENCE, old="if 0 < epoch < self.epoch:", new="if 0 < epoch < 0:")
    ],
    "a barrier does not wait for POSTs": [
        Edit(file=FENCE, old="await self._settle(epoch)", new="await asyncio.sleep(0)"),
        Edit(file=FENCE, old="if attempt.has_written and (", new="if False and ("),
    ],
    "a barrier does not name what was written": [
        Edit(file=FENCE, old="self._recall() if is_held", new="([], self._recall()[1]) if is_held")
    ],
    "no fresh list when the binder's memory is short": [
        Edit(
            file="gateway/leadership/barriers.py",
            old="await self._cluster.until_pods_as_of(result.complete_since)",
            new="await asyncio.sleep(0)",
        )
    ],
    "a bound pod that the watch has not shown is left out": [
        Edit(
            file="gateway/leadership/barriers.py",
            old='read_now.spec.node_name in ("", bind.node):',
            new="not read_now.spec.node_name:",
        )
    ],
    "an unknown outcome frees the node": [
        Edit(file="gateway/binding/binding.py", old="if failure.code in REFUSALS:", new="if True:")
    ],
}
"""The safeguards without which the model must break a rule, and how each is taken out."""


def main() -> None:
    """Run; end with 1 if a rule is broken, or none is without a safeguard."""
    parser = argparse.ArgumentParser(prog="python -m tools.model", description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES, help="of 40 steps each")
    parser.add_argument("--mutations", action="store_true", help="take safeguards out")
    parser.add_argument("--only", default="", help="mutations that match this expression")
    parser.add_argument("--json", action="store_true", help="print what is found as JSON")
    options = parser.parse_args()
    if options.mutations:
        sys.exit(not _mutations(options.machines, options.only))
    found = search(options.machines)
    if options.json:
        print(msgspec.json.encode(found).decode())
        return
    print(
        f"{found.rule}, after {found.steps} steps: {found.problem}" if found else "no rule broken"
    )
    sys.exit(bool(found))


def _mutations(machines: int, only: str) -> bool:
    """Print what each mutation breaks; return whether each breaks something."""
    print("| Without the safeguard | Broken rule | Steps | Seconds |\n|---|---|---:|---:|")
    all_found, problems = True, []
    for name, edits in MUTATIONS.items():
        if not re.search(only, name):
            continue
        found = _search_without(edits, machines)
        all_found &= found is not None
        if found is None:
            print(f"| {name} | NOT FOUND | | |", flush=True)
            continue
        print(f"| {name} | {found.rule} | {found.steps} | {found.seconds:.1f} |", flush=True)
        problems.append(f"{name}:\n  {found.problem}")
    print("", *problems, sep="\n")
    return all_found


def _search_without(edits: Sequence[Edit], machines: int) -> Found | None:
    """Return what the model finds in a copy of the tree that is edited."""
    run = run_without(edits, "tools.model", "--json", f"--machines={machines}")
    if run.returncode:
        sys.exit(f"the model does not run:\n{run.stderr}")
    return msgspec.json.decode(run.stdout.splitlines()[-1], type=Found | None)


if __name__ == "__main__":
    main()
