"""Writes the skeleton of a plugin. Called by `moorage new-plugin`."""

import keyword
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from cli.skeleton.texts import Form, Kind, project_name, texts
from moorage.errors import ConfigurationError

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALLOWED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skeleton:
    """What was written.

    Attributes:
        folder: Where.
        files: All files; the plugin and its test come first.
    """

    folder: Path
    files: tuple[Path, ...]


def write_skeleton(
    name: str,
    kind: Kind,
    form: Form,
    folder: Path | None,
    *,
    package: bool,
    taken: Collection[str],
) -> Skeleton:
    """Write a plugin and its test into a folder, which is made if need be.

    Args:
        name: The plugin's name, such as MaxTemperature, max_temperature or max-temperature.
        kind: What it does.
        form: Whether it is asked about each node, or about all at once; "node" or "permit" for kind
            "bind".
        folder: Where to write; None is the current folder, and a new one in it for a package.
        package: Whether it becomes a project that pip can install.
        taken: The names that plugins of this kind have already.

    Raises:
        ConfigurationError: The name will not do, or a file is there already.
    """
    plugin, module = _names(name)
    if plugin in taken:
        raise ConfigurationError(
            f"there is a {kind} plugin {plugin} already, and two of one name are refused: "
            "choose another name"
        )
    if folder is None:
        folder = Path(project_name(module)) if package else Path()
    found = texts(kind, form, plugin, module, package=package)
    files = {folder / file: text for file, text in found.items()}
    for file in files:
        if file.exists():
            raise ConfigurationError(
                f"{file} is there already: choose another name or folder, or remove it"
            )
    try:
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write into {folder}: {error.strerror}") from error
    return Skeleton(folder=folder, files=tuple(files))


def _names(name: str) -> tuple[str, str]:
    """Return the names of the class and of the file."""
    if not _ALLOWED.fullmatch(name) or len(name) > _LONGEST:
        raise ConfigurationError(
            f'"{name}" cannot be the name of a plugin: write up to {_LONGEST} letters and digits, '
            "such as MaxTemperature or max-temperature"
        )
    words = [word for part in re.split("[_-]", name) for word in _WORD.findall(part)]
    plugin = name if name.isalnum() and name[0].isupper() else "".join(map(_capital, words))
    module = "_".join(word.lower() for word in words)
    if keyword.iskeyword(module) or keyword.iskeyword(plugin) or module in _IMPORTED:
        raise ConfigurationError(
            f"{module}.py would hide Python's own {module}: choose a longer name"
        )
    return plugin, module


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


_LONGEST = 30  # characters; so that no line becomes too long
_IMPORTED = {*sys.stdlib_module_names, "moorage", "msgspec", "numpy", "pytest", "yaml"}
