"""The version of a plugin: a digest of its code."""

import hashlib
import inspect
import sys
from functools import lru_cache
from types import ModuleType

from moorage.plugin.base import Plugin

DIGITS = 16
"""Hexadecimal digits of a version."""


def version_of(kind: type[Plugin], origin: str) -> str:
    """Return a digest of the modules that a plugin class and its base classes are defined in.

    *origin* counts too: it has the version of an installed distribution. Other modules that the
    plugin imports do not count.
    """
    digest = hashlib.sha256(kind.__qualname__.encode())
    # The path of a file does not count: replicas may have the same file at different places.
    digest.update(origin.rpartition("/")[2].encode())
    for base in kind.__mro__[:-1]:
        module = sys.modules.get(base.__module__)
        digest.update(b"" if module is None else _source(module))
    return digest.hexdigest()[:DIGITS]


@lru_cache(maxsize=512)
def _source(module: ModuleType) -> bytes:
    try:
        return inspect.getsource(module).encode()
    except (OSError, TypeError):  # without a file: typed into a shell, or part of the interpreter
        return module.__name__.encode()
