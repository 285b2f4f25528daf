"""Runs one of Moorage's processes, from a checkout or a wheel: `python -m moorage_apps gateway`."""

import importlib.util
import runpy
import sys
from collections.abc import Sequence

from moorage_apps import make_importable

PROCESSES = (
    "gateway",
    "services.filter",
    "services.scorer",
    "services.binder",
    "services.annotator",
    "sandbox.apiserver",
    "sandbox.scheduler",
)


def main() -> None:
    """Run the module that the first argument names, with the other arguments."""
    make_importable()
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if not _exists(name):
        sys.exit(f"usage: python -m moorage_apps {{{','.join(PROCESSES)}}} [OPTION]...")
    run(name, sys.argv[2:])


def run(name: str, arguments: Sequence[str]) -> None:
    """Run a module with these arguments, as `python -m` does."""
    sys.argv[1:] = arguments
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


if __name__ == "__main__":
    main()
