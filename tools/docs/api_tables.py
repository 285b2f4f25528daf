"""The names of the public library, their kinds and their docstrings."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import griffe

from tools.docs.pages import ROOT, code

MODULES = (
    "moorage",
    "moorage.models",
    "moorage.snapshot",
    "moorage.rules",
    "moorage.measurements",
    "moorage.testing",
)
"""The modules that plugins may import, in the order of their pages."""

FOREIGN = {
    "Annotated": "`typing.Annotated`, for the bounds of an argument.",
    "Meta": "`msgspec.Meta`, the bounds themselves.",
    "field": "`msgspec.field`, for a default that is a list or a dictionary.",
}
"""Names of other libraries that are public here too."""


_KINDS = ("class", "function", "type alias", "attribute", "foreign")
"""The kinds of names, in the order in which they are shown."""


_FIRST = (
    *("FilterPlugin", "ScorePlugin", "Pod", "Node", "Rejection", "Normalization", "Arguments"),
    *("Annotated", "Meta", "field", "Nodes", "Verdicts", "Preparation", "SKIP", "Scope"),
    *("ObjectKind", "Objects", "BindPlugin", "Binding", "Refusal", "Allow", "Wait"),
    *("make_pod", "make_node", "run_filter", "run_score", "assert_node_local"),
)
"""What one meets first, in the order of learning; others follow by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicName:
    """A name of `__all__`: its kind, where it is defined, its docstring, its value as source."""

    name: str
    kind: str
    defined: str
    text: str
    value: str


@cache
def public_names(module: str) -> tuple[PublicName, ...]:
    """Return the public names of a module that no module before it has."""
    found = _library()[module.partition(".")[2]] if "." in module else _library()
    earlier = MODULES[: MODULES.index(module)]
    known = {each.name for other in earlier for each in public_names(other)}
    assert isinstance(found, griffe.Module)
    names = [str(name) for name in found.exports or ()]
    public = [_public(found, name) for name in names if name not in known]
    return tuple(sorted(public, key=_order))


def _order(name: PublicName) -> tuple[int, int]:
    first = _FIRST.index(name.name) if name.name in _FIRST else len(_FIRST)
    return first, _KINDS.index(name.kind)


def api(module: str) -> str:
    """Return the public names of a module, functions and classes with their signatures."""
    names = public_names(module)
    typed: dict[str, str] = {}
    signatures = "\n".join(line for each in names for line in _signatures(each, typed))
    others = [code(each.name) for each in names if not any(_signatures(each, {}))]
    also = f"Also {', '.join(others)}. " if others else ""
    return f"```text\n{signatures}\n```\n\n{also}`make docs` builds a site with their docstrings."


def _signatures(public: PublicName, typed: dict[str, str]) -> Iterator[str]:
    """Yield a function with its parameters, or a class with its attributes and methods.

    A parameter is its name alone if it is the same as the last of that name, in *typed*.
    """
    if public.kind == "foreign":
        return
    found = _library()[public.defined.partition(".")[2]]
    if isinstance(found, griffe.Alias):
        found = found.final_target
    if isinstance(found, griffe.Function):
        yield _call(found, typed)
    elif isinstance(found, griffe.Class):
        yield public.name
        members = [
            (name, each)
            for name, each in found.members.items()
            if not name.startswith("_") and not each.is_alias
        ]
        fields = [name for name, each in members if isinstance(each, griffe.Attribute)]
        if fields:
            yield f"    {', '.join(fields)}"
        for _, each in members:
            if isinstance(each, griffe.Function):
                yield f"    {_call(each, typed)}"


def _call(function: griffe.Function, typed: dict[str, str]) -> str:
    parameters = [each for each in function.parameters if each.name not in {"self", "cls"}]
    written: list[str] = []
    keyword_only = False
    for each in parameters:
        if each.kind is griffe.ParameterKind.keyword_only and not keyword_only:
            keyword_only = True
            if not any(other.startswith("*") for other in written):
                written.append("*")
        star = {
            griffe.ParameterKind.var_positional: "*",
            griffe.ParameterKind.var_keyword: "**",
        }.get(each.kind or griffe.ParameterKind.positional_or_keyword, "")
        kind = f": {each.annotation}" if each.annotation is not None else ""
        default = f" = {each.default}" if each.default is not None and not star else ""
        default = " = ..." if default.startswith((" = _", " = NO_")) else default
        whole = f"{star}{each.name}{kind}{default}"
        written.append(f"{star}{each.name}" if typed.get(each.name) == whole else whole)
        typed[each.name] = whole
    returns = f" -> {function.returns}" if str(function.returns) not in {"None", ""} else ""
    return f"{function.name}({', '.join(written)}){returns}"


def _classes(module: griffe.Module) -> Iterator[str]:
    for each in module.members.values():
        if isinstance(each, griffe.Module):
            yield from _classes(each)
        elif not each.is_alias:
            yield each.name


@cache
def _library() -> griffe.Module:
    found = griffe.load("moorage", search_paths=[ROOT / "sdk"], resolve_aliases=True)
    assert isinstance(found, griffe.Module)
    return found


def _public(module: griffe.Module, name: str) -> PublicName:
    if name in FOREIGN:
        return PublicName(name=name, kind="foreign", defined=name, text=FOREIGN[name], value="")
    found = module[name]
    text = found.docstring.value if found.docstring else ""
    value = str(getattr(found, "value", None) or "")
    defined = found.canonical_path
    return PublicName(name=name, kind=found.kind.value, defined=defined, text=text, value=value)


INTERNAL = frozenset(_classes(_library()))
"""The names of classes, functions and values anywhere in the library."""
