"""Names the tests that passed only when they were run again, and refuses one that often does.

`python -m tools.reruns TARGET FIRST SECOND`: two JUnit files of pytest, of which the second is of
what had failed, and is missing if nothing had. The names are kept for ten runs of a target on this
machine, outside of the tree, as CI runs in fresh clones. The exit code is 1 if a test needed its
second try in two of them.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

RUNS = 10


def main(target: str, first: str, second: str) -> int:
    """Print the tests, keep them, and return the exit code."""
    names = passed_at_last(Path(first), Path(second))
    print(f"{len(names)} tests passed only at their second run", *names, sep="\n  ")
    record = _cache() / f"second-tries-{target}"
    earlier = _read(record)
    record.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(each) for each in [*earlier, names][-RUNS:]]
    record.write_text("\n".join(lines) + "\n")
    before = {name for run in earlier[1 - RUNS :] for name in run}
    again = [name for name in names if name in before]
    print(f"{record} knows {min(len(earlier), RUNS - 1)} runs of {target} before this one")
    if again:
        print("needed their second try in one of those too: mend them", *again, sep="\n  ")
    return 1 if again else 0


def passed_at_last(first: Path, second: Path) -> list[str]:
    """Return the names of tests that failed in one file and passed in the other."""
    before, after = _outcomes(first), _outcomes(second)
    return sorted(name for name, passed in after.items() if passed and before.get(name) is False)


def _outcomes(file: Path) -> dict[str, bool]:
    """Return which tests passed; one with several entries (its teardown) failed if one did."""
    outcomes: dict[str, bool] = {}
    for case in ET.parse(file).iter("testcase") if file.exists() else ():
        name = f"{case.get('classname')}.{case.get('name')}"
        passed = case.find("failure") is None and case.find("error") is None
        outcomes[name] = passed and outcomes.get(name, True)
    return outcomes


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "moorage-ci"


def _read(record: Path) -> list[list[str]]:
    """Return what is kept of earlier runs, nothing if that cannot be read."""
    try:
        return [
            [str(name) for name in json.loads(line)] for line in record.read_text().splitlines()
        ]
    except (OSError, ValueError, TypeError):
        return []


if __name__ == "__main__":
    arguments: Sequence[str] = sys.argv[1:]
    sys.exit(main(*arguments))
