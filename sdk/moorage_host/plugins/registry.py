"""Which plugins exist: the built-in ones, installed packages, and files given by `--plugin`.

Being in the registry does not enable a plugin: the policy does. Each has a version, a digest of its
code with the modules beside it that it imports. The arguments that a policy gives are in the
revision of the policy; their defaults are code.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import moorage
from moorage.errors import PluginLoadError
from moorage.execution.alarm import BudgetExceededError, call_within
from moorage.execution.enabled import LOAD_SECONDS
from moorage.plugin.definition import HOOKS
from moorage.plugin.errors import DefinitionError, place_of
from moorage.plugin.hooks import BindPlugin, FilterPlugin, Plugin, ScorePlugin
from moorage_host.policy.catalogue import BUILT_IN, check_name

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
        package = current.relative_to(root).parent.parts
        for name in _imported(current.read_bytes(), package):
            parts = name.split(".")
            if top and parts[0] != top:
                continue
            for target in _files_of(root, parts):
                if target not in found:
                    found.add(target)
                    new.append(target)
    return found


@lru_cache(maxsize=512)  # plugins of a folder share most of what they import
def _imported(source: bytes, package: tuple[str, ...]) -> Sequence[str]:
    """Return what a module of *package* imports; some are no modules but what is in them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = [*above, *(node.module.split(".") if node.module else ())]
            names += (".".join([*base, alias.name]) for alias in node.names)
    return names


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


GROUPS: dict[type[Plugin], str] = {
    FilterPlugin: "moorage.filter",
    ScorePlugin: "moorage.score",
    BindPlugin: "moorage.bind",
}
"""The entry-point group in which packages announce plugins of each kind."""

_LEFT_OUT = re.compile(r"_.*|test_.*|.*_test\.py|conftest\.py")
"""Files of a folder that are not read; `moorage new-plugin` writes tests beside plugins."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A plugin class, where its code comes from, and the digest of that."""

    kind: type[Plugin]
    origin: str
    version: str


class Registry:
    """Plugins of one kind by name."""

    def __init__(self, kind: type[Plugin], built_ins: Iterable[type[Plugin]] = ()) -> None:
        """Start with *built_ins*, all of them subclasses of *kind*."""
        self._kind = kind
        self._plugins: dict[str, Registered] = {}
        for plugin in built_ins:
            self.add(plugin, BUILT_IN)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._plugins))

    def __len__(self) -> int:
        return len(self._plugins)

    def get(self, name: str) -> Registered | None:
        """Return the plugin called *name*."""
        return self._plugins.get(name)

    def add(self, plugin: type[Plugin], origin: str) -> None:
        """Add a plugin class.

        Raises:
            PluginLoadError: The name is taken, or means something else in a policy.
        """
        check_name(plugin.name, origin)
        taken = self._plugins.get(plugin.name)
        if taken is not None and taken.kind is not plugin:
            raise PluginLoadError(
                f"two plugins are called {plugin.name}: one {taken.origin}, one from {origin}; "
                "rename one of them with a class attribute `name`"
            )
        self._plugins[plugin.name] = Registered(plugin, origin, version_of(plugin, origin))

    def add_installed(self) -> None:
        """Add the plugins that installed packages announce as entry points.

        Raises:
            PluginLoadError: One cannot be imported, is not of this kind, or its name is taken.
        """
        for entry in importlib.metadata.entry_points(group=GROUPS[self._kind]):
            origin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
            try:
                plugin = call_within(LOAD_SECONDS, entry.load)
            except (Exception, BudgetExceededError) as error:
                raise PluginLoadError(
                    f"cannot load plugin {entry.name} of {origin}: {_cause(error)}"
                ) from error
            if not (inspect.isclass(plugin) and issubclass(plugin, self._kind)):
                raise PluginLoadError(
                    f"plugin {entry.name} of {origin} is not a {self._kind.__name__}: {entry.value}"
                )
            self.add(plugin, origin)

    def add_path(self, path: Path) -> None:
        """Add the plugins of a Python file, or of every Python file in a folder.

        In a folder, tests and files whose names begin with an underscore are left out. Plugins of
        other kinds are ignored.

        Raises:
            PluginLoadError: A file cannot be imported, there is no plugin, or a name is taken.
        """
        plugins = [plugin for file in _python_files(path) for plugin in _plugins_in(file)]
        if not plugins:
            raise PluginLoadError(_nothing_in(path))
        for plugin in plugins:
            if issubclass(plugin, self._kind):
                self.add(plugin, inspect.getfile(plugin))


def load_registry(
    kind: type[Plugin], built_ins: Iterable[type[Plugin]], paths: Iterable[Path]
) -> Registry:
    """Build the registry of a service.

    Args:
        kind: `FilterPlugin`, `ScorePlugin` or `BindPlugin`.
        built_ins: The plugins that come with the service.
        paths: Files and folders given by `--plugin`.

    Raises:
        PluginLoadError: A plugin cannot be loaded.
    """
    registry = Registry(kind, built_ins)
    registry.add_installed()
    for path in paths:
        registry.add_path(path)
    return registry


def is_plugin_file(file: Path) -> bool:
    """Return whether a Python file of a folder is read: neither a test nor a file with `_`."""
    return not _LEFT_OUT.fullmatch(file.name)


def _python_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise PluginLoadError(f"plugin path {path} does not exist")
    # A ConfigMap mount holds each file twice, the second time below a folder like `..data`.
    return sorted(file for file in path.glob("*.py") if is_plugin_file(file))


def _plugins_in(file: Path) -> list[type[Plugin]]:
    module = _import(file)
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Plugin)
        and value.__module__ == module.__name__
    ]


def _nothing_in(path: Path) -> str:
    """Describe a path without plugins; a class in it may lack just its base."""
    for file in _python_files(path):
        classes = filter(inspect.isclass, vars(_import(file)).values())
        for kind in (each for each in classes if each.__module__ == _module_name(file)):
            if base := _base_meant_by(kind):
                place = place_of(str(file.resolve()), inspect.getsourcelines(kind)[1])
                name = kind.__name__
                return f"{place}: {name} is no plugin: write `class {name}({base}):`"
    return (
        f"{path} defines no plugin: subclass moorage.FilterPlugin, ScorePlugin or BindPlugin in it"
    )


def _base_meant_by(kind: type) -> str:
    """Return the kind of plugin whose methods a class has; empty if it has none."""
    methods = ((base, hooks.one_of or hooks.any_of) for base, hooks in HOOKS.items())
    return next((base for base, names in methods if not vars(kind).keys().isdisjoint(names)), "")


def _import(file: Path) -> ModuleType:
    file = file.resolve()
    name = _module_name(file)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PluginLoadError(f"{file} is not a Python file: its name must end in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _exit_raises():
            call_within(LOAD_SECONDS, spec.loader.exec_module, module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit | BudgetExceededError):
            raise
        raise PluginLoadError(_import_problem(file, error)) from error
    return module


@contextmanager
def _exit_raises() -> Iterator[None]:
    """Have `os._exit` raise in this process meanwhile, which it would end without a word."""
    leave, process = os._exit, os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:  # a child that the file has forked
            leave(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave


def _module_name(file: Path) -> str:
    """Return what a plugin file is called as a module; two files must never share a name."""
    return f"moorage_plugin:{file.resolve()}"


def _import_problem(file: Path, error: BaseException) -> str:
    if isinstance(error, DefinitionError):
        return str(error)
    if isinstance(error, SyntaxError) and error.filename:
        where = place_of(error.filename, error.lineno)
        return f"{where}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == str(file)]
    where = place_of(str(file), own[-1].lineno if own else None)
    return f"{where}: {_cause(error)}"


def _cause(error: BaseException) -> str:
    if isinstance(error, BudgetExceededError):
        return f"it is not loaded after {LOAD_SECONDS:g} s; work that goes on belongs into `start`"
    return f"{type(error).__name__}: {error}"
