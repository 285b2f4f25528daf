"""The version of Moorage, which pyproject.toml names; an installed distribution knows it."""

import re
from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("moorage")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+unknown"


__version__ = _installed()
"""The version of the installed library."""

_MINOR = re.compile(r"([0-9]+)\.([0-9]+)")


def works_with(one: str, other: str) -> bool:
    """Whether processes of two versions read each other's messages.

    They do if the minor version is the same or the next one, or is not known.
    """
    numbers = [_MINOR.match(each) for each in (one, other)]
    known = sorted((int(each[1]), int(each[2])) for each in numbers if each)
    if len(known) < 2:
        return True
    (major, minor), newer = known
    return newer in ((major, minor), (major, minor + 1), (major + 1, 0))
