"""Which of kube-scheduler's calls failed: from its log."""

import re
from pathlib import Path

_FAILED = re.compile(
    rb'Post \\*"https?://[^"]*/(?P<verb>[a-z]+)\\*": (?P<cause>[^"\\]*)'
    rb"|failed (?P<refused>[a-z]+) with extender at URL [^ ]*, code (?P<code>\d+)"
)


class FailedCalls:
    """Reads what was added to kube-scheduler's log since the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[str]:
        """Return the calls that got no answer, or one that is none, such as "bind: EOF"."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        found = (_FAILED.search(line) for line in complete.splitlines())
        return [_text(match) for match in found if match]


def _text(match: re.Match[bytes]) -> str:
    parts = (match["verb"] or match["refused"], match["cause"] or b"code " + (match["code"] or b""))
    return ": ".join(part.decode(errors="replace").strip() for part in parts)
