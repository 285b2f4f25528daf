"""Asks kube-scheduler which configurations it starts with, for a table of files; records that.

What `make test` holds our reader to is recorded by: python -m tools.golden.configurations
KUBERNETES and SCHEDULER select the version that is asked, as in `tools.build`; the table keeps what
the others said. Each file is a good one with one change. A new case is a new entry there, with its
`case` and its `text`; `whole` says that the text has a head of its own, or none.

kube-scheduler reads the file and builds its profiles and extenders. It ends before it connects to
an API server, because it is told to write what it made of the file.
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.build import find, scheduler_version
from tools.planes.embedded import ROOT

RECORDED = ROOT / "tests" / "data" / "kube-scheduler-configurations.json"

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

PATIENCE = 30.0

NOWHERE = "http://127.0.0.1:9"

Case = dict[str, Any]

_FAILED = re.compile(
    r'"command failed" err=(?:(?P<line>"(?:[^"\\]|\\.)*")|<(?P<lines>.*?)\n >)', re.DOTALL
)
"""How kube-scheduler says why it ends: in quotes, or in lines of their own."""


def text_of(case: Case) -> str:
    """Return the whole file of a case."""
    text: str = case["text"]
    return text if case.get("whole") else HEAD + text


def refusals(texts: Sequence[str]) -> list[str]:
    """Return why the selected kube-scheduler does not start with each file; "" if it does.

    Raises:
        RuntimeError: It ended without saying why.
    """
    program = str(find("kube-scheduler"))
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        files = [Path(name) / f"{number}.yaml" for number in range(len(texts))]
        return list(pool.map(_refusal, [program] * len(files), files, texts))


def _refusal(program: str, file: Path, text: str) -> str:
    file.write_bytes(text.encode())
    command = [program, f"--config={file}", f"--master={NOWHERE}", "--secure-port=0"]
    ended = subprocess.run(
        [*command, f"--write-config-to={file}.written"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    if ended.returncode == 0:
        return ""
    errors = ended.stderr.decode(errors="replace")
    if panic := re.search(r"^panic: .*", errors, re.MULTILINE):
        return panic[0]
    if not (said := _FAILED.search(errors)):
        raise RuntimeError(f"{text}\n{errors[-4000:]}")
    message: str = said["lines"] or json.loads(said["line"].replace("\\x", "\\u00"))
    return " ".join(message.split())


def paths_in(refusal: str) -> list[str]:
    """Return the fields that a refusal names; those of wrong types have no indices.

    Arguments that a plugin refuses when it is built have paths that begin in them.
    """
    return list(dict.fromkeys(_paths(refusal)))


def _paths(refusal: str) -> Iterator[str]:
    arguments = re.search(r"decoding \.(profiles\[\d+\]\.pluginConfig\[\d+\])", refusal)
    place = f"{arguments[1]}.args." if arguments else ""
    yield from (place + path for path in re.findall(r'unknown field "([^"]+)"', refusal))
    kinds = "Invalid value|Required value|Duplicate value|Unsupported value|Forbidden"
    yield from re.findall(rf"(\w[\w.\[\]]*): (?:{kinds})", refusal)
    if typed := re.search(r"into Go struct field \w+\.([\w.]+) of type", refusal):
        yield typed[1].replace("DebuggingConfiguration.", "")


def record() -> None:
    """Write the answers of the selected version beside those of the others."""
    version = scheduler_version()
    cases: list[Case] = json.loads(RECORDED.read_text())["cases"]
    versions = sorted({version, *(each for case in cases for each in case.get("starts", ()))})
    for case, said in zip(cases, refusals([text_of(case) for case in cases]), strict=True):
        starts = {*case.get("starts", ()), version} - ({version} if said else set())
        case["starts"] = sorted(starts)
        refusing = [each for each in versions if each not in starts]
        if not refusing:
            case.pop("paths", None)
        elif version == refusing[-1]:
            case["paths"] = paths_in(said)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    RECORDED.write_text(f'{{"versions": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    record()
