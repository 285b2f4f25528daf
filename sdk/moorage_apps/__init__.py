"""Where Moorage's applications are, in a checkout or in a wheel, and how they are started.

Their packages have names that other projects use too (`gateway`, `services`, `cli`, `sandbox`). So
a wheel keeps them in this folder, where only Moorage's own processes find them: ADR 21.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent

HOME = _HERE if (_HERE / "gateway").is_dir() else _HERE.parents[1]
"""The folder with the packages of the applications and with `deploy`."""


def make_importable() -> None:
    """Let this process import the applications, before anything else of their names."""
    if sys.path[:1] != [str(HOME)]:
        sys.path.insert(0, str(HOME))
