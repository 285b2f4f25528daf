"""Wall clocks of programs that a campaign can set, with libfaketime. Monotonic clocks go on."""

from pathlib import Path

LIBRARIES = "*/faketime/libfaketimeMT.so.1"


def library() -> Path | None:
    """Return where libfaketime is; None if it is not installed."""
    return next(Path("/usr/lib").glob(LIBRARIES), None)


class Clocks:
    """The wall clocks of programs, which read how wrong they are from files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, Path] = {}

    def environment(self, program: str) -> dict[str, str]:
        """Return what a program is started with so that its clock can be set."""
        self._files[program] = self._directory / f"{program}.clock"
        self.jump(program, 0)
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._files[program]),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, program: str, seconds: float) -> None:
        """Let a program's clock be wrong by so many seconds from now on."""
        new = self._files[program].with_suffix(".new")
        new.write_text(f"{seconds:+.0f}\n")
        new.rename(self._files[program])

    def heal(self) -> None:
        """Let all clocks be right."""
        for program in self._files:
            self.jump(program, 0)
