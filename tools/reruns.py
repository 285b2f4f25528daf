"""Names the tests that failed at first and passed when they were run again: a table for CI.

`python -m tools.reruns FIRST SECOND`, two JUnit files of pytest, of which the second is of what
had failed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET


def passed_at_last(first: Path, second: Path) -> list[str]:
    """Return the names of tests that failed in one file and passed in the other."""
    before, after = _outcomes(first), _outcomes(second)
    return sorted(name for name, passed in after.items() if passed and before.get(name) is False)


def main(files: Sequence[str]) -> None:
    """Print how many they are, and each of them."""
    names = passed_at_last(*map(Path, files))
    print(f"{len(names)} tests passed only at their second run", *names, sep="\n  ")


def _outcomes(file: Path) -> dict[str, bool]:
    """Return which tests passed; one with several entries (its teardown) failed if one did."""
    outcomes: dict[str, bool] = {}
    for case in ET.parse(file).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        passed = case.find("failure") is None and case.find("error") is None
        outcomes[name] = passed and outcomes.get(name, True)
    return outcomes


if __name__ == "__main__":
    main(sys.argv[1:])
