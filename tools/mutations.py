"""Takes one safeguard after another out of a copy of the tree, and shows that it is noticed.

python -m tools.mutations [chaos|model] [--only TEXT] [OPTION ...]

By a campaign of `tools.chaos`, or by the model in virtual time; these get the other options. It
ends with 1 if a safeguard is not missed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.planes.embedded import ROOT

FENCE = "services/binder/binding/fence.py"
BARRIERS = "gateway/leadership/barriers.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replaces a text that a file has exactly once."""

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Change the file below *root*.

        Raises:
            LookupError: The text is not there once.
        """
        path = root / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise LookupError(f"{self.file} has {text.count(self.old)} times: {self.old}")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One safeguard that is taken out.

    Attributes:
        safeguard: What is missing then.
        edits: What is changed.
        row: The row of the campaign's table that must fail then, as an expression; empty if
            something else notices it.
    """

    safeguard: str
    edits: Sequence[Edit]
    row: str = ""


NO_BIND_CHECK = Edit(
    file="gateway/scheduling/bind_check.py",
    old="cause = self._cause(pod, call, decision, epoch)",
    new="cause = None",
)
NO_FENCE = Edit(file=FENCE, old="if 0 < epoch < self.epoch:", new="if 0 < epoch < 0:")
NO_WAIT = Edit(file=FENCE, old="await self._settle(epoch)", new="await asyncio.sleep(0)")
NO_MEMORY = Edit(
    file=FENCE, old="self._recall() if is_held", new="([], self._recall()[1]) if is_held"
)

CHAOS = (
    Mutation(
        safeguard="uid precondition: a Binding names the pod's uid",
        row="slower than the timeout",
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
        edits=[NO_FENCE],
    ),
    Mutation(
        safeguard="barrier: a new term waits for binds under way, and learns what was written",
        row="kill -9 gateway",
        edits=[NO_WAIT, NO_MEMORY],
    ),
    Mutation(
        safeguard="re-check: filter plugins are asked again at the bind",
        row="latency",
        edits=[NO_BIND_CHECK],
    ),
    Mutation(
        safeguard="digest: answers of two versions of a plugin are never joined",
        row="two versions",
        edits=[
            Edit(
                file="gateway/policy/policy.py",
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
                old="        before, self._versions, self._unread = self._versions, ",
                new=(
                    "        if self.synced.is_set():\n"
                    "            full.versions, full.changed = dict(self._versions), {}\n"
                    "        before, self._versions, self._unread = self._versions, "
                ),
            )
        ],
    ),
)
"""Without each of them the campaign must fail."""

MODEL = (
    Mutation(safeguard="the check at /bind", edits=[NO_BIND_CHECK]),
    Mutation(safeguard="the fence at the binder", edits=[NO_FENCE]),
    Mutation(
        safeguard="a barrier waits for POSTs",
        edits=[NO_WAIT, Edit(file=FENCE, old="if attempt.has_written and (", new="if False and (")],
    ),
    Mutation(safeguard="a barrier names what was written", edits=[NO_MEMORY]),
    Mutation(
        safeguard="a fresh list when the binder's memory is short",
        edits=[
            Edit(
                file=BARRIERS,
                old="await self._cluster.until_pods_as_of(result.complete_since)",
                new="await asyncio.sleep(0)",
            )
        ],
    ),
    Mutation(
        safeguard="a bound pod counts that the watch has not shown",
        edits=[
            Edit(
                file=BARRIERS,
                old='read_now.spec.node_name in ("", bind.node):',
                new="not read_now.spec.node_name:",
            )
        ],
    ),
    Mutation(
        safeguard="an unknown outcome keeps the node",
        edits=[
            Edit(
                file="gateway/binding/binding.py",
                old="if is_certain and failure.code in REFUSALS:",
                new="if True:",
            )
        ],
    ),
)
"""Without each of them the model must break a rule."""

MUTATIONS = {"chaos": CHAOS, "model": MODEL}

MODULES = {"chaos": "tools.chaos", "model": "tools.model"}

OPTIONS = {
    "chaos": ("--fail-fast", "--seed=17", "--rounds=6"),
    "model": (),
}
"""What each gets beside the options of the command line, which count more."""


def main() -> None:
    """Run all mutations; end with 1 if one is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutations", description=__doc__)
    parser.add_argument("by", choices=MUTATIONS, nargs="?", default="chaos", help="who must notice")
    parser.add_argument("--only", default="", help="only safeguards that match this expression")
    chosen, options = parser.parse_known_args()
    unnoticed = 0
    for mutation in MUTATIONS[chosen.by]:
        if re.search(chosen.only, mutation.safeguard):
            print(f"without {mutation.safeguard}", flush=True)
            found = _run(chosen.by, mutation, options)
            print(*(f"    {line}" for line in found or ["NOT NOTICED"]), sep="\n", flush=True)
            unnoticed += not found
    sys.exit(bool(unnoticed))


def _run(by: str, mutation: Mutation, options: Sequence[str]) -> list[str]:
    """Return what is found in a copy of the tree with the mutation."""
    row = (f"--only={mutation.row}",) if mutation.row else ()
    done = run_without(mutation.edits, MODULES[by], *OPTIONS[by], *row, *options)
    if not done.returncode:
        return []
    # A campaign says which round failed, with its first findings and what was injected.
    text = done.stdout.partition("\nround ")[2] if by == "chaos" else done.stdout
    if not text:
        sys.exit(f"{by} does not run:\n{done.stderr}")
    return [line.strip() for line in text.splitlines()[:5]]


def run_without(
    edits: Iterable[Edit], module: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of a copy of the tree that is edited."""
    with tempfile.TemporaryDirectory(prefix="moorage-mutation-") as directory:
        root = Path(directory) / "moorage"
        _copy_tree(root)
        for edit in edits:
            edit.apply(root)
        return subprocess.run(
            [sys.executable, "-m", module, *options],
            cwd=root,
            env={**os.environ, "PYTHONPATH": f"{root}:{root / 'sdk'}"},
            capture_output=True,
            text=True,
            check=False,
        )


def _copy_tree(root: Path) -> None:
    """Copy what git knows of the tree, as it is now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file() and not name.startswith("docs/"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)


if __name__ == "__main__":
    main()
