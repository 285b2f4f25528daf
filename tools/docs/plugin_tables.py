"""The tables about plugins: what they do, their arguments, which `InTree` stands for."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from moorage.measurements import PrometheusSettings
from moorage.plugin.arguments import Arguments
from moorage.plugin.hooks import Plugin, extension_points
from moorage.plugin.values import Scope
from moorage_host.policy.merge import IN_TREE_PLUGINS
from services.binder.plugins import BUILT_INS as BINDERS
from services.filter.plugins import BUILT_INS as FILTERS
from services.scorer.plugins import BUILT_INS as SCORERS
from tools.docs.pages import Row, code, escaped, table

PARTS: Mapping[str, type[Arguments]] = {"PrometheusSettings": PrometheusSettings}
"""Arguments that several plugins have, each with a table of its own."""

PLUGINS: Mapping[str, Sequence[type[Plugin]]] = {
    "filter": FILTERS,
    "scorer": SCORERS,
    "binder": BINDERS,
}


def plugins(name: str) -> str:
    """Return the built-in plugins of a service, in the order of their names."""
    head, cells = {
        "filter": (("depends on", "reads placements", "claims"), _filter),
        "scorer": (("depends on", "reads placements"), _scorer),
        "binder": (("points",), _binder),
    }[name]
    return table(
        ("plugin", *head, "what it does"),
        (
            (code(kind.name), *cells(kind), escaped(_summary(kind)))
            for kind in sorted(PLUGINS[name], key=lambda kind: kind.name)
        ),
    )


def _filter(kind: type[Plugin]) -> Row:
    return *_scorer(kind), _yes("Reserve" in extension_points(kind))


def _scorer(kind: type[Plugin]) -> Row:
    scope = kind.depends_on
    return "" if scope is Scope.ANYTHING else code(scope.name), _yes(kind.reads_placements)


def _binder(kind: type[Plugin]) -> Row:
    return (", ".join(extension_points(kind)),)


def arguments(part: str) -> str:
    """Return the arguments of all built-in plugins, or the fields of a part that they share."""
    if part:
        return table(("field", "default", "meaning"), _fields(PARTS[part]))
    kinds = {kind for group in PLUGINS.values() for kind in group}
    shared: dict[Row, list[str]] = {}
    for kind in sorted(kinds, key=lambda kind: (kind.name, kind.__module__)):
        for row in _fields(kind.Args):
            names = shared.setdefault(tuple(row), [])
            if code(kind.name) not in names:
                names.append(code(kind.name))
    rows = sorted(shared.items(), key=lambda row: row[1])
    return table(
        ("plugin", "argument", "default", "meaning"),
        (
            ("" if names == before else ", ".join(names), *row)
            for (row, names), before in zip(rows, [[], *(n for _, n in rows)], strict=False)
        ),
    )


def in_tree(_: str) -> str:
    """Return the plugins that `InTree` stands for, in their order."""
    names = {service: {kind.name for kind in group} for service, group in PLUGINS.items()}
    return table(
        ("plugin", "filters", "scores with weight"),
        (
            (
                code(entry.name),
                _yes(entry.name in names["filter"]),
                str(entry.weight or 1) if entry.name in names["scorer"] else "",
            )
            for entry in IN_TREE_PLUGINS
        ),
    )


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _summary(kind: type[Plugin]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _fields(args: type[Arguments]) -> Iterator[Row]:
    schema = msgspec.json.schema(args)
    definitions: dict[str, Any] = schema["$defs"]
    defaults = dict(_defaults(args))
    meanings = _meanings(args)
    for name, properties in definitions[args.__name__]["properties"].items():
        typed = _type(properties, definitions)
        is_part = typed.startswith("[")
        default = "" if is_part else defaults.get(name, "required")
        meaning = escaped(meanings.get(name, meanings[""]))
        yield code(name), default, f"{meaning} ({typed})" if typed else meaning


def _defaults(args: type[Arguments]) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(args):
        if not field.required:
            unset = field.default is msgspec.NODEFAULT
            value = field.default_factory() if unset else field.default
            yield field.encode_name, code(msgspec.json.encode(value).decode())


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
        if kind in PARTS:
            return f"[{kind}](#{kind.lower()})"
        fields = definitions[kind]["properties"]
        inner = ((name, _type(each, definitions)) for name, each in fields.items())
        return f"{{{', '.join(f'{name}: {typed}' if typed else name for name, typed in inner)}}}"
    if "enum" in schema:
        return ", ".join(code(str(choice)) for choice in sorted(schema["enum"]))
    if isinstance(schema.get("items"), Mapping):
        return f"list of {_type(schema['items'], definitions) or 'names'}"
    least, above, most = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if least is not None and most is not None:
        return f"{least} to {most}"
    bounds = (("from", least), ("above", above), ("up to", most))
    return ", ".join(f"{words} {bound}" for words, bound in bounds if bound is not None)


def _meanings(args: type[Arguments]) -> dict[str, str]:
    """Return the docstring of an `Args` by argument; for those that it does not list under ""."""
    result: dict[str, str] = {}
    for kind in reversed(args.__mro__[: args.__mro__.index(Arguments)]):
        summary, _, listed = inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:\n")
        result[""] = " ".join(summary.split())
        for match in re.finditer(r"^    (\w+): (.+(?:\n        .+)*)", listed, re.M):
            result[_camel(match[1])] = " ".join(match[2].split())
    return result


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
