"""The public library from its docstrings, where GitHub shows a table of its names.

A page marks the place with `<!-- table: api MODULE -->`, as `tools.docs.generate` does.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from textwrap import indent
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from tools.docs.api_tables import FOREIGN, INTERNAL, MODULES, PublicName, public_names

_TABLE = re.compile(r"<!-- table: api (\S+) -->.*?<!-- end -->", re.DOTALL)
_OTHERS = re.compile(
    r"(typing|logging|types|collections|abc|datetime|enum|contextlib|numpy|np|npt|msgspec|pathlib)\b"
)
_ATTRIBUTES: dict[str, list[str]] = {}
_BASES = ", ".join(
    [
        *("Struct", "object", "ABC", "BaseException", "Exception", "Enum", "IntEnum", "int"),
        *("Sequence", "Mapping", "Protocol", "Generic"),
    ]
)
"""Classes of other libraries whose members are not shown again."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _add_docstrings)
    app.connect("autodoc-process-docstring", _mark_code, priority=100)
    app.connect("autodoc-process-docstring", _keep_attributes, priority=900)  # after napoleon
    app.connect("autodoc-process-signature", _mark_defaults)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True}


def _add_docstrings(_: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = _TABLE.sub(lambda match: _module(match[1]), source[0])


def _module(name: str) -> str:
    parts = "\n\n".join(_directive(name, each) for each in public_names(name))
    return f"```{{eval-rst}}\n.. py:module:: {name}\n\n{parts}\n```"


def _directive(module: str, public: PublicName) -> str:
    full = f"{module}.{public.name}"
    found = getattr(importlib.import_module(module), public.name)
    if inspect.isclass(found) and public.kind == "class":
        bases = {f"{base.__module__}.{base.__qualname__}" for base in found.__bases__}
        shown = "\n:show-inheritance:" if bases & _PUBLIC.keys() else ""
        members = f":members:\n:inherited-members: {_BASES}{shown}"
        return f".. autoclass:: {full}\n{indent(members, '   ')}"
    if inspect.isfunction(found):
        return f".. autofunction:: {full}"
    value = f"\n   :value: {public.value}" if len(public.value) < 80 and public.value else ""
    return f".. py:data:: {public.name}{value}\n\n{indent(public.text, '   ')}"


def _mark_code(_: Sphinx, *rest: Any) -> None:
    """Mark indented blocks as code, which docstrings have after a blank line."""
    what, name, _, _, lines = rest
    lines[:] = _marked(lines)
    if what in ("attribute", "data", "property"):
        _ATTRIBUTES[name] = [*lines]


def _keep_attributes(_: Sphinx, *rest: Any) -> None:
    """Undo what napoleon does to attributes: it takes the words before a colon for a type."""
    _, name, _, _, lines = rest
    lines[:] = _ATTRIBUTES.pop(name, lines)


def _marked(lines: list[str]) -> Iterator[str]:
    before, code = "", False
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith("    "):
            code, before = False, line
        elif line.strip() and not code and number and not lines[number - 1].strip() and before:
            code = True
            yield from ("::", "")
        yield line


def _mark_defaults(_: Sphinx, *rest: Any) -> tuple[str | None, str | None]:
    """Show a default that is made for each struct as `...`, which is Python."""
    *_others, signature, returns = rest
    return signature and signature.replace("<factory>", "..."), returns


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.TextElement
) -> nodes.Node | None:
    """Lead from where an object is defined to where it is public."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    if public := _PUBLIC.get(target):
        docname, domain = node["refdoc"], env.domains["py"]
        return domain.resolve_xref(env, docname, app.builder, "obj", public, node, shown)
    known = _OTHERS.match(target) or target in FOREIGN or target.rpartition(".")[2] in INTERNAL
    return shown if known else None


def _defined() -> Iterator[tuple[str, str]]:
    for module in reversed(MODULES):
        for each in public_names(module):
            yield each.defined, f"{module}.{each.name}"
            yield each.name, f"{module}.{each.name}"


_PUBLIC = dict(_defined())
"""The public name of each object by where it is defined, and by its name alone."""
