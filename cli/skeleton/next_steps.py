"""The commands that test and run a new plugin; printed by `moorage new-plugin`.

They work when they are copied, in any shell: they name this interpreter by its whole path.
"""

import importlib.util
import shlex
import sys
from pathlib import Path

from cli.skeleton.writing import Skeleton

_PYTHON = shlex.quote(sys.executable)
_MOORAGE = shlex.quote(str(Path(sys.executable).parent / "moorage"))


def to_test(skeleton: Skeleton, *, package: bool) -> str:
    """Return the command that runs the plugin's test."""
    if package:
        return _inside(skeleton, f"{_PYTHON} -m pip install -e '.[dev]' && {_PYTHON} -m pytest")
    install = f"{_PYTHON} -m pip install pytest && "
    missing = "" if importlib.util.find_spec("pytest") else install
    return _inside(skeleton, f"{missing}{_PYTHON} -m pytest {shlex.quote(skeleton.files[1].name)}")


def to_run(skeleton: Skeleton, *, package: bool) -> str:
    """Return the command that runs the plugin on the embedded cluster."""
    if package:
        return _inside(skeleton, f"{_MOORAGE} up --config policy.yaml")
    return f"{_MOORAGE} up --plugin {shlex.quote(str(skeleton.files[0]))}"


def _inside(skeleton: Skeleton, command: str) -> str:
    """Return a command that does its work in the folder, and leaves the shell where it is."""
    if skeleton.folder.resolve() == Path.cwd():
        return command
    return f"(cd {shlex.quote(str(skeleton.folder))} && {command})"
