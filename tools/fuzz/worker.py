"""Fuzzes one target in this process: `python -m tools.fuzz.worker TARGET CASES SECONDS SEED OUT`.

atheris (libFuzzer) chooses the cases by the branches that they reach. A finding does not end the
run: it is made smaller and written into the corpus, once for each signature. The result is a JSON
file in OUT, where new cases are, too. Called by `tools.fuzz.__main__`.
"""

import faulthandler
import json
import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import atheris

from tools.fuzz import CORPUS, CURRENT, NEW, RESULT

GROWTH = 96 << 20
"""Bytes of memory that a run may gain after its first fifth."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


class Worker:
    """Counts cases, keeps findings, and ends the process after the last case or in time."""

    def __init__(self, judge: Any, cases: int, seconds: float, out: Path) -> None:
        self._judge = judge
        self._cases = cases
        self._end_at = time.monotonic() + seconds
        self._out = out
        self._count = 0
        self._warm = 0
        self._findings: dict[str, str] = {}
        self._current = os.open(out / CURRENT, os.O_CREAT | os.O_RDWR)

    def __call__(self, data: bytes) -> None:
        os.pwrite(self._current, data, 0)  # for the parent, in case that this process hangs
        os.ftruncate(self._current, len(data))
        signature = self._judge.signature(data)
        if signature and signature not in self._findings:
            self._keep(data, signature)
        self._count += 1
        if self._count == self._cases // 5:
            self._warm = memory()
        if self._count == self._cases or time.monotonic() > self._end_at:
            self._end()

    def _keep(self, data: bytes, signature: str) -> None:
        from tools.fuzz.judge import file_name

        problem = self._judge.problem
        smaller = self._judge.minimised(data, signature)
        folder = CORPUS / self._judge.target.name
        folder.mkdir(exist_ok=True)
        (folder / file_name(smaller)).write_bytes(smaller)
        self._findings[signature] = f"{file_name(smaller)}: {problem}"

    def _end(self) -> None:
        grown = memory() - self._warm if self._warm else 0
        if grown > GROWTH:
            self._findings["memory"] = f"memory grew by {grown >> 20} MiB in {self._count} cases"
        cpu = time.process_time()
        result = {"cases": self._count, "findings": self._findings, "grown": grown, "cpu": cpu}
        (self._out / RESULT).write_text(json.dumps(result))
        with suppress(Exception):
            self._judge.close()
        os._exit(0)  # nothing else ends libFuzzer before the last case


def main(name: str, cases: int, seconds: float, seed: int, out: Path) -> None:
    """Fuzz; never returns."""
    faulthandler.register(signal.SIGUSR1, file=os.dup(2))  # the judge takes over sys.stderr
    # Only what is imported here reports its branches; libraries would drown them.
    with atheris.instrument_imports(include=["moorage", "moorage_host", "gateway", "services"]):
        targets = import_module("tools.fuzz.targets")
        judging = import_module("tools.fuzz.judge")
    target = targets.TARGETS[name]()
    (out / NEW).mkdir(parents=True, exist_ok=True)
    dictionary = out / "dictionary"
    dictionary.write_text("".join(f'"{_quoted(token)}"\n' for token in target.tokens))

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        changed = target.mutated(data, random) if random.random() < 0.6 else None
        if changed is None or len(changed) > most:
            changed = atheris.Mutate(data, min(most, max(len(data) + 64, 8)))
        return bytes(changed)

    arguments = [
        sys.argv[0],
        f"-runs={cases}",
        f"-seed={seed}",
        f"-max_len={target.longest}",
        f"-dict={dictionary}",
        f"-artifact_prefix={out}/",
        *("-timeout=600", "-rss_limit_mb=2048", "-verbosity=0", "-len_control=20"),
        str(out / NEW),
    ]
    if (CORPUS / name).is_dir():
        arguments.append(str(CORPUS / name))
    worker = Worker(judging.Judge(target), cases, seconds, out)
    custom = {"custom_mutator": mutate} if target.has_structure else {}
    atheris.Setup(arguments, worker, **custom)
    atheris.Fuzz()


def _quoted(token: str) -> str:
    plain = token.encode()
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in plain)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
