"""Takes out one safeguard after another, and shows that the campaign fails without it.

python -m tools.chaos.mutations [--only TEXT] [--seed N] [--rounds N]
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.mutations import Edit, run_without


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One safeguard that is taken out.

    Attributes:
        safeguard: Which one.
        row: The row of the campaign's table that must fail then, as an expression.
        edits: What is changed.
    """

    safeguard: str
    row: str
    edits: Sequence[Edit]


MUTATIONS = (
    Mutation(
        safeguard="uid precondition: a Binding names the pod's uid",
        row="nearly as slow",
        edits=[
            Edit(
                file="services/binder/cluster.py",
                old='            "uid": binding.uid,\n',
                new="",
            )
        ],
    ),
    Mutation(
        safeguard="epoch: the binder refuses binds of earlier terms",
        row="dead gateway",
        edits=[
            Edit(
                file="services/binder/binding/fence.py",
                old="if 0 < epoch < self.epoch:",
                new="if 0 < epoch < 0:",
            )
        ],
    ),
    Mutation(
        safeguard="barrier: a new term waits for binds under way, and learns what was written",
        row="kill -9 gateway",
        edits=[
            Edit(
                file="services/binder/binding/fence.py",
                old="await self._settle(epoch)",
                new="await asyncio.sleep(0)",
            ),
            Edit(
                file="services/binder/binding/fence.py",
                old="self._recall() if is_held",
                new="([], self._recall()[1]) if is_held",
            ),
        ],
    ),
    Mutation(
        safeguard="re-check: filter plugins are asked again at the bind",
        row="latency",
        edits=[
            Edit(
                file="gateway/scheduling/bind_check.py",
                old="cause = self._cause(pod, call, decision, epoch) if pod is not None else None",
                new="cause = None",
            )
        ],
    ),
    Mutation(
        safeguard="digest: answers of two versions of a plugin are never joined",
        row="two versions",
        edits=[
            Edit(
                file="gateway/policy/versions.py",
                old='versions = sorted(f"{plugin.name}={plugin.version}" for plugin in plugins)',
                new='versions = sorted(f"{plugin.name}" for plugin in plugins)',
            )
        ],
    ),
    Mutation(
        safeguard="re-sync: a watch that has expired is followed by a full list",
        row="watches cut",
        edits=[
            Edit(
                file="gateway/cluster/reflector.py",
                old="        before, self._versions = self._versions, full.versions\n",
                new=(
                    "        if self.synced.is_set():\n"
                    "            full.versions, full.changed = dict(self._versions), {}\n"
                    "        before, self._versions = self._versions, full.versions\n"
                ),
            )
        ],
    ),
)


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
    row = f"--only={mutation.row}"
    run = run_without(
        mutation.edits, "tools.chaos", "--fail-fast", f"--seed={seed}", f"--rounds={rounds}", row
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
