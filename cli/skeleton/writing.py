"""Writes the skeleton of a plugin from `templates`. Called by `moorage new-plugin`.

In a template, `$plugin` stands for the class, `$module` for the file, `$project` for the package,
`$kind` for what it does. Lines are short enough for every formatter, and everything passes ruff and
mypy as it is.
"""

import importlib.util
import keyword
import re
import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from string import Template
from typing import Literal, TypeAlias

from cli.shared.files import write_files
from moorage.errors import ConfigurationError

Kind: TypeAlias = Literal["filter", "score", "bind"]
Form: TypeAlias = Literal["node", "batch", "permit"]

TEMPLATES = Path(__file__).with_name("templates")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALLOWED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")
_LONGEST = 30  # characters; so that no line becomes too long
_IMPORTED = {*sys.stdlib_module_names, "moorage", "msgspec", "numpy", "pytest", "yaml"}


def write_skeleton(
    name: str,
    kind: Kind,
    form: Form,
    folder: Path | None,
    *,
    package: bool,
    taken: Collection[str],
) -> tuple[Sequence[Path], str, str]:
    """Write a plugin and its test into a folder, which is made if need be.

    Args:
        name: The plugin's name, such as MaxTemperature, max_temperature or max-temperature.
        kind: What it does.
        form: Whether it is asked about each node, or about all at once; "node" or "permit" for kind
            "bind".
        folder: Where to write; None is the current folder, and a new one in it for a package.
        package: Whether it becomes a project that pip can install.
        taken: The names that plugins of this kind have already.

    Returns:
        The files, the plugin and its test first, and the commands that run the test, and the plugin
        on the embedded cluster.

    Raises:
        ConfigurationError: The name will not do, or a file is there already.
    """
    plugin, module = _names(name)
    if plugin in taken:
        raise ConfigurationError(
            f"there is a {kind} plugin {plugin} already, and two of one name are refused: "
            "choose another name"
        )
    project = module.replace("_", "-")
    if folder is None:
        folder = Path(project) if package else Path()
    code, test = f"{kind}-{form}.py", f"test-{'permit' if form == 'permit' else kind}.py"
    templates = {f"{module}.py": code, f"test_{module}.py": test}
    if package:
        templates = {f"src/{module}/__init__.py": code, f"tests/test_{module}.py": test}
        templates |= {each: each for each in ("pyproject.toml", "policy.yaml", "README.md")}
    names = {"plugin": plugin, "module": module, "project": project, "kind": kind}
    files = {
        folder / file: Template((TEMPLATES / f"{each}.txt").read_text("utf-8")).substitute(names)
        for file, each in templates.items()
    }
    if package:
        files[folder / "src" / module / "py.typed"] = ""
    for file in files:
        if file.exists():
            raise ConfigurationError(
                f"{file} is there already: choose another name or folder, or remove it"
            )
    write_files(files)
    plugin_file, test_file, *_ = files
    to_test = _to_test(folder, test_file, package=package)
    return list(files), to_test, _to_run(folder, plugin_file, package=package)


def _to_test(folder: Path, test: Path, *, package: bool) -> str:
    """Return a command that works when it is copied, in any shell: python has its whole path."""
    python = shlex.quote(sys.executable)
    if package:
        return _inside(folder, f"{python} -m pip install -e '.[dev]' && {python} -m pytest")
    install = f"{python} -m pip install pytest && "
    missing = "" if importlib.util.find_spec("pytest") else install
    return _inside(folder, f"{missing}{python} -m pytest {shlex.quote(test.name)}")


def _to_run(folder: Path, plugin: Path, *, package: bool) -> str:
    moorage = shlex.quote(str(Path(sys.executable).parent / "moorage"))
    if package:
        return _inside(folder, f"{moorage} up --config policy.yaml")
    return f"{moorage} up --plugin {shlex.quote(str(plugin))}"


def _inside(folder: Path, command: str) -> str:
    """Return a command that does its work in the folder, and leaves the shell where it is."""
    if folder.resolve() == Path.cwd():
        return command
    return f"(cd {shlex.quote(str(folder))} && {command})"


def _names(name: str) -> tuple[str, str]:
    """Return the names of the class and of the file."""
    if not _ALLOWED.fullmatch(name) or len(name) > _LONGEST:
        raise ConfigurationError(
            f'"{name}" cannot be the name of a plugin: write up to {_LONGEST} letters and digits, '
            "such as MaxTemperature or max-temperature"
        )
    words = [word for part in re.split("[_-]", name) for word in _WORD.findall(part)]
    capital = "".join(f"{word[:1].upper()}{word[1:]}" for word in words)
    plugin = name if name.isalnum() and name[0].isupper() else capital
    module = "_".join(word.lower() for word in words)
    if keyword.iskeyword(module) or keyword.iskeyword(plugin) or module in _IMPORTED:
        raise ConfigurationError(
            f"{module}.py would hide Python's own {module}: choose a longer name"
        )
    return plugin, module
