"""The version of Moorage, which pyproject.toml names; an installed distribution knows it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("moorage")
except PackageNotFoundError:  # run from a checkout that was never installed
    __version__ = "0+unknown"
