"""The results of a run as a file."""

from pathlib import Path

import msgspec

from bench.results import Results

OUT = Path(__file__).parents[1] / "out"
LATEST = OUT / "latest.json"


def write(results: Results, file: Path = LATEST) -> None:
    """Write everything as JSON."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


def read(file: Path = LATEST) -> Results:
    """Read what `write` wrote."""
    return msgspec.json.decode(file.read_bytes(), type=Results)
