"""The version of Moorage, which pyproject.toml names; an installed distribution knows it."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("moorage")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+unknown"


__version__ = _installed()
"""The version of the installed library."""
