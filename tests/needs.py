"""Skips a test that needs a program which this machine lacks."""

import shutil

import pytest


def needed(name: str) -> str:
    """Return the path of a program; skip the test if there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found
