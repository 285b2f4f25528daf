"""Audits the locked dependencies, and prints a table: `make audit`.

Hashes and licences need no network. Yanked versions are those that pip warns of, with whichever
index it is set up for. Known vulnerabilities are left to pip-audit where that is installed. What
cannot be reached is one line, and no failure.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from tools.dependencies.index import vulnerable, yanked
from tools.dependencies.licences import PROGRAMS, licence, refused
from tools.dependencies.locks import Locked, locked

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Return 1 if anything is wrong."""
    rows: dict[tuple[str, str], Locked] = {}
    notes: list[str] = []
    problems: dict[tuple[str, str], list[str]] = {}
    for lock in sorted(ROOT.glob("requirements*.lock")):
        for package in locked(lock):
            rows.setdefault((package.name, package.version), package)
            if not package.hashes:
                problems.setdefault(package.key, []).append(f"no hash in {package.place}")
    # This lock is a superset of requirements.lock; the fuzzer's is small and used nowhere else.
    for check in (yanked, vulnerable):
        found, note = check(ROOT / "requirements-dev.lock")
        notes.append(note)
        for key, what in found.items():
            problems.setdefault(key, []).append(what)
    table = []
    for key, package in sorted(rows.items()):
        try:
            terms = licence(metadata(package.name))
        except PackageNotFoundError:
            terms = "not installed here"
        else:
            if PROGRAMS.get(package.name) != terms and (what := refused(terms)):
                problems.setdefault(key, []).append(f"{what} (tools/dependencies/licences.py)")
        table.append((*key, str(len(package.hashes)), terms, "; ".join(problems.get(key, ()))))
    _print([("package", "version", "hashes", "licence", "problem"), *table])
    print(f"\n{len(rows)} packages, {len(problems)} with problems")
    print(*notes, sep="\n")
    return int(bool(problems))


def _print(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
