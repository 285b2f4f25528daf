"""Skips a test that needs a program which this machine lacks."""

import shutil

import pytest

from tools.build import find, is_there, tools


def needed(name: str) -> str:
    """Return the path of a program, also of one that `make e2e` built; skip the test without."""
    found = shutil.which(name)
    if found is None and name in tools() and is_there(name):
        return str(find(name))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found
