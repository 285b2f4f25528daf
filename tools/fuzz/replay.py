"""Runs the corpus of all targets once, without atheris: `python -m tools.fuzz.replay`.

Writes one line of JSON for each target: its name, the number of its cases, and by file what is
wrong. A process of its own, since it takes over the log.
"""

import json
import sys

from tools.fuzz import CORPUS
from tools.fuzz.judge import Judge
from tools.fuzz.targets import TARGETS


def main(names: list[str]) -> None:
    """Run the corpus of some targets, or of all."""
    for name in names or list(TARGETS):
        judge = Judge(TARGETS[name]())
        files = sorted((CORPUS / name).iterdir())
        wrong = {file.name: judge.problem for file in files if judge.signature(file.read_bytes())}
        judge.close()
        print(json.dumps({"target": name, "cases": len(files), "wrong": wrong}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
