"""Fuzzes all targets, two at a time, and prints what was found: `make fuzz`."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.fuzz import CORPUS, CURRENT, NEW, RESULT
from tools.fuzz.judge import file_name
from tools.fuzz.targets import TARGETS

BUDGET = 180.0  # seconds after which a target ends, however many of its cases are done
HUNG = 600.0  # seconds without a new case; on a busy machine the imports alone take minutes
KEPT = 40  # new cases of a target that --keep takes over, the smallest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one target came to."""

    name: str
    wanted: int
    cases: int = 0
    corpus: int = 0
    new: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    grown: float = 0.0
    findings: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Return how many findings there are, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--targets", default="", help="names with commas between; default: all")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of each target")
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
        work = {name: pool.submit(_fuzz, name, counts[name], options) for name in slowest_first}
        rows = [work[name].result() for name in names]
    _print(rows, options.seed)
    return int(any(row.findings for row in rows))


def _fuzz(name: str, wanted: int, options: argparse.Namespace) -> Row:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        out = Path(folder)
        limits = [str(wanted), str(options.budget), str(options.seed)]
        command = [sys.executable, "-m", "tools.fuzz.worker", name, *limits, folder]
        with (out / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            code = _ended_or_killed(process, out / CURRENT)
        seconds = time.monotonic() - start
        new = sorted((out / NEW).glob("*"), key=lambda file: file.stat().st_size)
        if options.keep:
            _keep(name, new)
        size = len(list((CORPUS / name).glob("*")))
        row = Row(name=name, wanted=wanted, corpus=size, new=len(new), seconds=seconds)
        if not (out / RESULT).exists():
            return replace(row, findings={"ended": _ended(name, out, code)})
        result = json.loads((out / RESULT).read_text())
        return replace(
            row,
            cases=result["cases"],
            cpu=result["cpu"],
            grown=result["grown"] / 2**20,
            findings=result["findings"],
        )


def _ended_or_killed(process: subprocess.Popen[bytes], current: Path) -> int:
    """Wait for a target; one that hangs writes where it is, and is killed."""
    changed, since = 0.0, time.monotonic()
    while time.monotonic() - since < HUNG:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(1)
        now = current.stat().st_mtime if current.exists() else 0.0
        if now != changed:
            changed, since = now, time.monotonic()
    if current.exists():  # it takes the signal from then on
        process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(5)
    process.kill()
    return process.wait()


def _ended(name: str, out: Path, code: int) -> str:
    """Keep the case during which a target ended or hung."""
    data = (out / CURRENT).read_bytes() if (out / CURRENT).exists() else b""
    if data:
        (CORPUS / name).mkdir(exist_ok=True)
        (CORPUS / name / file_name(data)).write_bytes(data)
    end = (out / "log").read_text(errors="replace")[-2000:]
    return f"{file_name(data)}: the process ended with {code} in or after this case\n{end}"


def _keep(name: str, new: list[Path]) -> None:
    (CORPUS / name).mkdir(exist_ok=True)
    for file in new[:KEPT]:
        shutil.copy(file, CORPUS / name / file_name(file.read_bytes()))


def _print(rows: list[Row], seed: int) -> None:
    print(
        f"{'target':12} {'cases':>8} {'of':>8} {'corpus':>7} {'new':>5} {'findings':>9} {'s':>6} "
        f"{'cpu s':>6} {'MiB':>6}"
    )
    for row in rows:
        print(
            f"{row.name:12} {row.cases:>8} {row.wanted:>8} {row.corpus:>7} {row.new:>5} "
            f"{len(row.findings):>9} {row.seconds:>6.0f} {row.cpu:>6.0f} {row.grown:>+6.1f}"
        )
    total, wanted = sum(row.cases for row in rows), sum(row.wanted for row in rows)
    new, found = sum(row.new for row in rows), sum(len(row.findings) for row in rows)
    cpu = sum(row.cpu for row in rows)
    print(f"{'all':12} {total:>8} {wanted:>8} {'':>7} {new:>5} {found:>9} {'':>6} {cpu:>6.0f}")
    if short := [row.name for row in rows if row.cases < row.wanted and not row.findings]:
        print(f"The budget ended {', '.join(short)}: BUDGET=n gives each target n seconds.")
    for row in rows:
        for problem in row.findings.values():
            print(f"\n{row.name}: tools/fuzz/corpus/{row.name}/{problem}")
    if found:
        print(f"\nThe files are in the corpus now: mend the causes, and commit both. SEED={seed}")


if __name__ == "__main__":
    sys.exit(main())
