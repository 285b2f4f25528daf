"""Fuzzes all targets, two at a time, and prints what was found: `make fuzz`."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.files import CORPUS, CURRENT, NEW, RESULT
from tests.fuzz.judge import file_name
from tests.fuzz.targets import TARGETS

HUNG = 900.0  # seconds after which a target is ended
KEPT = 40  # new cases of a target that --keep takes over, the smallest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one target came to."""

    name: str
    cases: int = 0
    corpus: int = 0
    new: int = 0
    seconds: float = 0.0
    grown: float = 0.0
    findings: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Return how many findings there are, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--targets", default="", help="names with commas between; default: all")
    parser.add_argument("--keep", action="store_true", help="add the new cases to the corpus")
    options = parser.parse_args()
    names = options.targets.split(",") if options.targets else list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        sys.exit(f"there is no target {', '.join(sorted(unknown))}: there are {', '.join(TARGETS)}")
    shares = sum(TARGETS[name].share for name in names)
    counts = {n: max(int(options.cases * TARGETS[n].share / shares), 10) for n in names}
    counts[names[0]] += max(options.cases - sum(counts.values()), 0)
    print(f"fuzzing {options.cases} cases, SEED={options.seed}", flush=True)
    slowest_first = sorted(names, key=lambda name: -TARGETS[name].seconds * counts[name])
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        work = {
            name: pool.submit(_fuzz, name, counts[name], options.seed, options.keep)
            for name in slowest_first
        }
        rows = [work[name].result() for name in names]
    _print(rows, options.seed)
    return int(any(row.findings for row in rows))


def _fuzz(name: str, cases: int, seed: int, keep: bool) -> Row:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        out = Path(folder)
        command = [sys.executable, "-m", "tests.fuzz.worker", name, str(cases), str(seed), folder]
        with (out / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                code = process.wait(HUNG)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        seconds = time.monotonic() - start
        new = sorted((out / NEW).glob("*"), key=lambda file: file.stat().st_size)
        if keep:
            _keep(name, new)
        size = len(list((CORPUS / name).glob("*")))
        if not (out / RESULT).exists():
            problem = _ended(name, out, code)
            return Row(name=name, corpus=size, seconds=seconds, findings={"ended": problem})
        result = json.loads((out / RESULT).read_text())
        return Row(
            name=name,
            cases=result["cases"],
            corpus=size,
            new=len(new),
            seconds=seconds,
            grown=result["grown"] / 2**20,
            findings=result["findings"],
        )


def _ended(name: str, out: Path, code: int) -> str:
    """Keep the case during which a target ended or hung."""
    data = (out / CURRENT).read_bytes() if (out / CURRENT).exists() else b""
    (CORPUS / name).mkdir(exist_ok=True)
    (CORPUS / name / file_name(data)).write_bytes(data)
    end = (out / "log").read_text(errors="replace")[-2000:]
    return f"{file_name(data)}: the process ended with {code} in this case, or hung\n{end}"


def _keep(name: str, new: list[Path]) -> None:
    (CORPUS / name).mkdir(exist_ok=True)
    for file in new[:KEPT]:
        shutil.copy(file, CORPUS / name / file_name(file.read_bytes()))


def _print(rows: list[Row], seed: int) -> None:
    print(
        f"{'target':12} {'cases':>8} {'corpus':>7} {'new':>5} {'findings':>9} {'s':>6} {'MiB':>6}"
    )
    for row in rows:
        print(
            f"{row.name:12} {row.cases:>8} {row.corpus:>7} {row.new:>5} {len(row.findings):>9} "
            f"{row.seconds:>6.0f} {row.grown:>+6.1f}"
        )
    total, found = sum(row.cases for row in rows), sum(len(row.findings) for row in rows)
    print(f"{'all':12} {total:>8} {'':>7} {sum(r.new for r in rows):>5} {found:>9}")
    for row in rows:
        for problem in row.findings.values():
            print(f"\n{row.name}: tests/fuzz/corpus/{row.name}/{problem}")
    if found:
        print(f"\nThe files are in the corpus now: mend the causes, and commit both. SEED={seed}")


if __name__ == "__main__":
    sys.exit(main())
