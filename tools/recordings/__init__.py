"""What real kube-schedulers sent to an extender, as `python -m tools.traffic` recorded it."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from moorage_host.kube_scheduler import Verb

HERE = Path(__file__).parent
PREFIX, SUFFIX = "kube-scheduler-", ".jsonl.gz"


class Recorded(msgspec.Struct, frozen=True):
    """One request: the verb, the headers, and the body as it was."""

    verb: Verb
    headers: Mapping[str, str]
    body: str


def recording_names() -> list[str]:
    """Return the names of all recordings, such as 1.37-names: the minor version, and the mode."""
    files = HERE.glob(f"{PREFIX}*{SUFFIX}")
    return sorted(file.name.removeprefix(PREFIX).removesuffix(SUFFIX) for file in files)


def recorded_requests(name: str) -> list[Recorded]:
    """Return the requests of a recording, in the order in which they were sent."""
    text = gzip.decompress(recording_file(name).read_bytes())
    return [Recorded(**json.loads(line)) for line in text.splitlines()]


def recording_file(name: str) -> Path:
    """Return the file of a recording."""
    return HERE / f"{PREFIX}{name}{SUFFIX}"
