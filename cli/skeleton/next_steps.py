"""Which commands test and run a new plugin where it was written; printed by `moorage new-plugin`.

They work when they are copied: with the interpreter that Moorage is installed for, whether or not
the shell finds it, and with pytest installed first if it is not there.
"""

import importlib.util
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from cli.skeleton.writing import Skeleton

_ROOT = Path(__file__).resolve().parents[2]
"""Of the repository, if this is a checkout."""


def is_installed(module: str) -> bool:
    """Return whether this interpreter has a module."""
    return importlib.util.find_spec(module) is not None


def to_test(
    skeleton: Skeleton, *, package: bool, installed: Callable[[str], bool] = is_installed
) -> str:
    """Return the command that runs the plugin's test.

    Args:
        skeleton: What was written.
        package: Whether it is a project.
        installed: Whether this interpreter has a module.
    """
    python = _python(skeleton)
    if package:
        install = _install(python, "-e '.[dev]'", installed)
        return _inside(skeleton, f"{install} && {python} -m pytest")
    test = shlex.quote(skeleton.files[1].name)
    missing = "" if installed("pytest") else f"{_get_pytest(python, installed)} && "
    return _inside(skeleton, f"{missing}{python} -m pytest {test}")


def to_run(skeleton: Skeleton, *, package: bool) -> str:
    """Return the command that runs the plugin on the embedded cluster."""
    if package:
        return _inside(skeleton, f"{_moorage(skeleton)} up --config policy.yaml")
    return f"{_moorage()} up --plugin {shlex.quote(str(skeleton.files[0]))}"


def _inside(skeleton: Skeleton, command: str) -> str:
    """Return a command that does its work in the folder, and leaves the shell where it is."""
    if _is_here(skeleton):
        return command
    return f"(cd {shlex.quote(str(skeleton.folder))} && {command})"


def _is_here(skeleton: Skeleton) -> bool:
    return skeleton.folder.resolve() == Path.cwd()


def _get_pytest(python: str, installed: Callable[[str], bool]) -> str:
    # In a checkout, the repository's own settings of pytest need more than pytest.
    if Path(sys.prefix) == _ROOT / ".venv":
        return f"make -C {shlex.quote(str(_ROOT))} .venv/.dev"
    return _install(python, "pytest", installed)


def _install(python: str, what: str, installed: Callable[[str], bool]) -> str:
    if installed("pip"):
        return f"{python} -m pip install {what}"
    return f"uv pip install --python {python} {what}"


def _python(skeleton: Skeleton) -> str:
    path = Path(sys.executable)
    found = shutil.which(path.name)
    # An environment's interpreter is a link to another one: the folder distinguishes them.
    is_found = found is not None and Path(found).parent.resolve() == path.parent.resolve()
    return path.name if is_found else _shown(path, skeleton)


def _moorage(skeleton: Skeleton | None = None) -> str:
    path = Path(sys.executable).parent / "moorage"
    found = shutil.which("moorage")
    is_found = found is not None and Path(found).resolve() == path.resolve()
    return path.name if is_found else _shown(path, skeleton)


def _shown(path: Path, skeleton: Skeleton | None) -> str:
    """Return a path as short as it may be for a command that runs in the folder, or here."""
    here = Path.cwd()
    stays = skeleton is None or _is_here(skeleton)
    return shlex.quote(str(path.relative_to(here) if stays and here in path.parents else path))
