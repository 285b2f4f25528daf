"""Writes files of the user, all of several or none."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from moorage.errors import ConfigurationError


def write_files(files: Mapping[Path, str]) -> None:
    """Write texts into files, and make their folders; what was there is written over.

    Raises:
        ConfigurationError: One cannot be written. Then none of the files is there, and no folder
            that was made for them.
    """
    made: list[Path] = []
    for file, text in files.items():
        try:
            for folder in reversed(file.parents):
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
            with file.open("w", encoding="utf-8") as opened:
                made.append(file)
                opened.write(text)
        except OSError as error:
            for path in reversed(made):
                with suppress(OSError):  # another program has written into the folder
                    path.rmdir() if path.is_dir() else path.unlink()
            raise ConfigurationError(f"cannot write {file}: {reason_of(error)}") from error


def reason_of(error: OSError) -> str:
    """Return the system's own words."""
    return (error.strerror or str(error)).lower()
