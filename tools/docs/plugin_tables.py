"""The tables about plugins: what they do, their arguments, which `InTree` stands for."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from moorage.measurements import PrometheusSettings
from moorage.plugin.arguments import Arguments
from moorage.plugin.base import Plugin
from moorage.plugin.pod_fields import DISK_FIELDS, PORT_FIELDS, REQUEST_FIELDS
from moorage.plugin.points import extension_points
from moorage_host.policy.merge import IN_TREE_PLUGINS
from services.binder.plugins import BUILT_INS as BINDERS
from services.filter.plugins import BUILT_INS as FILTERS
from services.scorer.plugins import BUILT_INS as SCORERS
from tools.docs.pages import Row, code, escaped, table

PARTS: Mapping[str, type[Arguments]] = {"PrometheusSettings": PrometheusSettings}
"""Arguments that several plugins have, each with a table of its own."""

KNOWN_FIELDS: Mapping[tuple[str, ...], str] = {
    (): "nothing",
    REQUEST_FIELDS: code("requests"),
    PORT_FIELDS: code("host_ports"),
    DISK_FIELDS: code("disks"),
}
"""What fields are called together."""

PLUGINS: Mapping[str, Sequence[type[Plugin]]] = {
    "filter": FILTERS,
    "scorer": SCORERS,
    "binder": BINDERS,
}


def plugins(name: str) -> str:
    """Return the built-in plugins of a service, in the order of their names."""
    weights = {entry.name: str(entry.weight or 1) for entry in IN_TREE_PLUGINS}
    scored = name == "scorer"
    in_tree = "weight in `InTree`" if scored else "in `InTree`"
    about_nodes = name != "binder"
    dependencies = ("depends on", "reads placements", "of the pod it reads") if about_nodes else ()
    return table(
        ("plugin", "points", in_tree, *dependencies, "what it does"),
        (
            (
                code(kind.name),
                ", ".join(extension_points(kind)),
                weights.get(kind.name, "") if scored else _yes(kind.name in weights),
                *(_dependencies(kind) if about_nodes else ()),
                escaped(_summary(kind)),
            )
            for kind in sorted(PLUGINS[name], key=lambda kind: kind.name)
        ),
    )


def arguments(part: str) -> str:
    """Return the arguments of all built-in plugins, or the fields of a part that they share."""
    if part:
        return table(("field", "type", "default", "meaning"), _fields(PARTS[part]))
    kinds = {kind for group in PLUGINS.values() for kind in group}
    shared: dict[Row, list[str]] = {}
    for kind in sorted(kinds, key=lambda kind: (kind.name, kind.__module__)):
        for row in _fields(kind.Args):
            names = shared.setdefault(tuple(row), [])
            if code(kind.name) not in names:
                names.append(code(kind.name))
    return table(
        ("plugin", "argument", "type", "default", "meaning"),
        ((", ".join(names), *row) for row, names in shared.items()),
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


def _dependencies(kind: type[Plugin]) -> tuple[str, ...]:
    return code(kind.depends_on.name), _yes(kind.reads_placements), _pod_fields(kind)


def _pod_fields(kind: type[Plugin]) -> str:
    if kind.pod_fields is None:
        return ""
    return KNOWN_FIELDS.get(kind.pod_fields) or ", ".join(map(code, kind.pod_fields))


def _summary(kind: type[Plugin]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _fields(args: type[Arguments]) -> Iterator[Row]:
    schema = msgspec.json.schema(args)
    definitions: dict[str, Any] = schema["$defs"]
    defaults = dict(_defaults(args))
    meanings = _meanings(args)
    for name, properties in definitions[args.__name__]["properties"].items():
        typed = _type(properties, definitions)
        shown_there = typed.startswith("[")
        default = "" if shown_there else defaults.get(name, "required")
        yield code(name), typed, default, escaped(meanings.get(name, meanings[""]))


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
        inner = ", ".join(f"{name}: {_type(each, definitions)}" for name, each in fields.items())
        return f"{{{inner}}}"
    if "enum" in schema:
        return " or ".join(code(str(choice)) for choice in sorted(schema["enum"]))
    text = str(schema["type"])
    if isinstance(schema.get("items"), Mapping):
        text = f"list of {_type(schema['items'], definitions)}"
    bounds = [
        f"{words} {schema[key]}"
        for key, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
        )
        if key in schema
    ]
    empty = schema.get("minLength") or schema.get("minItems")
    return ", ".join([text, *bounds, *(["not empty"] if empty else [])])


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
