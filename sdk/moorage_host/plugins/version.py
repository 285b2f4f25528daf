"""The version of a plugin: a digest of its code, with the modules beside it that it imports.

The arguments that a policy gives are in the policy's revision; their defaults are code.
"""

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import moorage
from moorage.plugin.base import Plugin

DIGITS = 16
"""Hexadecimal digits of a version."""


def version_of(kind: type[Plugin], origin: str) -> str:
    """Return a digest of the code of a plugin class.

    That is the modules that it and its base classes are defined in, all modules that these import
    from their own folder or package, at whatever place in the code, and the library `moorage`. Of
    other packages nothing counts, except that *origin* has the version of an installed one.
    """
    digest = hashlib.sha256(kind.__qualname__.encode())
    # The path of a file does not count: replicas may have the same file at different places.
    digest.update(origin.rpartition("/")[2].encode())
    digest.update(_library())
    modules = [sys.modules.get(base.__module__) for base in kind.__mro__[:-1]]
    for module in dict.fromkeys(modules):
        if module is not None and module.__name__.partition(".")[0] != moorage.__name__:
            digest.update(_code_of(module))
    return digest.hexdigest()[:DIGITS]


@lru_cache(maxsize=512)
def _code_of(module: ModuleType) -> bytes:
    """Return a digest of a module, and of what it imports from its own folder or package."""
    try:
        file = Path(inspect.getfile(module)).resolve()
        file.read_bytes()
    except (OSError, TypeError):  # without a file: typed into a shell, or part of the interpreter
        return module.__name__.encode()
    package = module.__package__ or ""
    parts = package.split(".") if package in sys.modules else []  # a lone file is in none
    root = file.parents[len(parts)]
    top = parts[0] if parts else ""
    digest = hashlib.sha256()
    for each in sorted(_with_imports(file, root, top)):
        digest.update(each.relative_to(root).as_posix().encode() if each != file else b"")
        digest.update(each.read_bytes())
    return digest.digest()


def _with_imports(file: Path, root: Path, top: str) -> set[Path]:
    """Return a file and those below *root* that it imports, directly or not.

    Without a package *top*, all modules of the folder count as its own.
    """
    found, new = {file}, [file]
    while new:
        current = new.pop()
        for name in _imported(current, root):
            parts = name.split(".")
            if top and parts[0] != top:
                continue
            for target in _files_of(root, parts):
                if target not in found:
                    found.add(target)
                    new.append(target)
    return found


def _imported(file: Path, root: Path) -> Iterator[str]:
    """Yield what a file imports, as names below *root*; some are no modules but what is in them."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = file.relative_to(root).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = [*above, *(node.module.split(".") if node.module else ())]
            for alias in node.names:
                yield ".".join([*base, alias.name])


def _files_of(root: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the files of a dotted name: its packages, and the module."""
    for length in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:length])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                yield file


@lru_cache(maxsize=1)
def _library() -> bytes:
    folder = Path(inspect.getfile(moorage)).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.digest()
