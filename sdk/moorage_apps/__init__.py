"""Where Moorage's applications are, in a checkout or in a wheel, and how they are started.

Their packages have names that other projects use too (`gateway`, `services`, `cli`, `sandbox`). So
a wheel keeps them in this folder, where only Moorage's own processes find them: ADR 21.
"""

import sys
from os.path import isdir, realpath  # without pathlib, during whose import Ctrl-C may come

_HERE = realpath(__file__).rpartition("/")[0]

HOME = _HERE if isdir(f"{_HERE}/gateway") else _HERE.rsplit("/", 2)[0]  # noqa: PTH112 - as above
"""The folder with the packages of the applications and with `deploy`."""


def make_importable() -> None:
    """Let this process import the applications, before anything else of their names."""
    if sys.path[:1] != [HOME]:
        sys.path.insert(0, HOME)
