"""What the tables of the documentation say, from the code itself. `generate` puts them there."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec
from prometheus_client import CollectorRegistry

from cli.main import main
from gateway.cluster.cluster import WatchFamilies
from gateway.extender.metrics import EdgeMetrics
from gateway.metrics import ClusterCollector, CycleMetrics
from gateway.replicas.metrics import SessionFamilies
from gateway.settings import GatewaySettings
from moorage.plugin import Arguments, Plugin, extension_points
from moorage.policy.defaults import DEFAULT_MULTI_POINT
from moorage.rpc.metrics import BUILD_INFO, CALL_SECONDS, CALLS, MetricRow, metrics_table
from moorage.rpc.process import AdminSettings, ProcessSettings
from moorage.rpc.serve import ServerSettings
from moorage.setting_fields import Dataclass
from moorage.settings import SettingRow, settings_table
from sandbox.apiserver.__main__ import Options as ApiServerOptions
from sandbox.scheduler.__main__ import Settings as SchedulerSettings
from services.binder import metrics as binder_metrics
from services.binder.settings import BinderSettings
from services.filter.plugins import BUILT_INS as FILTERS
from services.filter.settings import FilterSettings
from services.scorer.plugins import BUILT_INS as SCORERS
from services.scorer.settings import ScorerSettings
from tests.docs.pages import ROOT

Row = Sequence[str]

SETTINGS: Mapping[str, tuple[type[Dataclass], type[Dataclass] | None]] = {
    "process": (ProcessSettings, None),
    "admin": (AdminSettings, ProcessSettings),
    "server": (ServerSettings, AdminSettings),
    "gateway": (GatewaySettings, AdminSettings),
    "filter": (FilterSettings, ServerSettings),
    "scorer": (ScorerSettings, ServerSettings),
    "binder": (BinderSettings, ServerSettings),
    "api-server": (ApiServerOptions, ProcessSettings),
    "kube-scheduler": (SchedulerSettings, ProcessSettings),
}
"""For each table of settings the class that it shows, and the one whose settings are elsewhere."""

PLUGINS: Mapping[str, Sequence[type[Plugin]]] = {"filter": FILTERS, "scorer": SCORERS}


def settings(name: str) -> str:
    """Return the settings that a kind of process adds to those of all."""
    cls, base = SETTINGS[name]
    elsewhere = {row.option for row in settings_table(base)} if base else set()
    rows = [row for row in settings_table(cls) if row.option not in elsewhere]
    return _table(
        ("option", "environment variable", "default", "unit", "meaning"),
        (
            (_code(r.option), _code(r.environment), _code(r.default), r.unit, _meaning(r))
            for r in rows
        ),
    )


def metrics(name: str) -> str:
    """Return the metrics of a kind of process."""
    rows = {"gateway": _gateway_metrics, "binder": _binder_metrics, "common": _common_metrics}
    return _table(
        ("name", "type", "labels", "meaning"),
        (
            (_code(r.name), r.type, ", ".join(map(_code, r.labels)), _escaped(r.help))
            for r in sorted(rows[name](), key=lambda row: row.name)
        ),
    )


def plugins(name: str) -> str:
    """Return the built-in plugins of a service, in the order of their names."""
    weights = {entry.name: str(entry.weight or 1) for entry in DEFAULT_MULTI_POINT.enabled}
    scored = name == "scorer"
    return _table(
        ("plugin", "points", "default weight" if scored else "runs by default", "what it does"),
        (
            (
                _code(kind.name),
                ", ".join(extension_points(kind)),
                weights.get(kind.name, "off") if scored else _yes(kind.name in weights),
                _escaped(_summary(kind)),
            )
            for kind in sorted(PLUGINS[name], key=lambda kind: kind.name)
        ),
    )


def arguments(_: str) -> str:
    """Return the arguments of all built-in plugins."""
    kinds = [kind for group in PLUGINS.values() for kind in group]
    return _table(
        ("plugin", "argument", "type", "default", "meaning"),
        (row for kind in sorted(kinds, key=lambda kind: kind.name) for row in _arguments(kind)),
    )


def default_policy(_: str) -> str:
    """Return the plugins that run without a policy, in their order."""
    names = {service: {kind.name for kind in group} for service, group in PLUGINS.items()}
    return _table(
        ("plugin", "filters", "scores with weight"),
        (
            (
                _code(entry.name),
                _yes(entry.name in names["filter"]),
                str(entry.weight or 1) if entry.name in names["scorer"] else "",
            )
            for entry in DEFAULT_MULTI_POINT.enabled
        ),
    )


def make(_: str) -> str:
    """Return the targets of the Makefile."""
    targets = re.findall(r"^([a-z0-9-]+):.*?## (.+)$", (ROOT / "Makefile").read_text(), re.M)
    return _table(("target", "what it does"), ((_code(f"make {t}"), text) for t, text in targets))


def command(name: str) -> str:
    """Return the parameters of a command of the command line, such as "config show"."""
    found: click.Command = main
    for part in name.split():
        assert isinstance(found, click.Group)
        found = found.commands[part]
    return _table(("parameter", "default", "meaning"), _parameters(found))


TABLES: Mapping[str, Callable[[str], str]] = {
    "settings": settings,
    "metrics": metrics,
    "plugins": plugins,
    "arguments": arguments,
    "default-policy": default_policy,
    "make": make,
    "command": command,
}


def _table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in x) for x in lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _meaning(row: SettingRow) -> str:
    return _escaped(row.meaning)


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _summary(kind: type[Plugin]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _arguments(kind: type[Plugin]) -> Iterator[Row]:
    schema = msgspec.json.schema(kind.Args)
    definitions: dict[str, Any] = schema["$defs"]
    defaults = msgspec.to_builtins(kind.Args())
    meanings = _meanings(kind.Args)
    for name, properties in definitions[kind.Args.__name__]["properties"].items():
        default = msgspec.json.encode(defaults[name]).decode()
        meaning = meanings.get(name, meanings[""])
        typed = _type(properties, definitions)
        yield _code(kind.name), _code(name), typed, _code(default), _escaped(meaning)


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        fields = definitions[schema["$ref"].rpartition("/")[2]]["properties"]
        inner = ", ".join(f"{name}: {_type(each, definitions)}" for name, each in fields.items())
        return f"{{{inner}}}"
    if "enum" in schema:
        return " or ".join(_code(str(choice)) for choice in sorted(schema["enum"]))
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
    summary, _, listed = (inspect.getdoc(args) or "").partition("\n\nAttributes:\n")
    result = {"": " ".join(summary.split())}
    for match in re.finditer(r"^    (\w+): (.+(?:\n        .+)*)", listed, re.M):
        result[_camel(match[1])] = " ".join(match[2].split())
    return result


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _parameters(found: click.Command) -> Iterator[Row]:
    for parameter in found.params:
        if isinstance(parameter, click.Argument):
            optional = "" if parameter.required else "optional"
            yield _code(parameter.make_metavar(click.Context(found))), optional, ""
        elif isinstance(parameter, click.Option):
            metavar = "" if parameter.is_flag else f" {_metavar(parameter, found)}"
            text, _, default = (parameter.help or "").removesuffix("]").partition("[default: ")
            yield (
                _code(parameter.opts[0] + metavar),
                _code(default) or _default(parameter),
                _escaped(text.strip()),
            )


def _metavar(option: click.Option, found: click.Command) -> str:
    return option.make_metavar(click.Context(found)).replace("|", " or ").removesuffix(" RANGE")


def _default(option: click.Option) -> str:
    value = option.to_info_dict()["default"]
    return "" if option.is_flag or not isinstance(value, str | int | float) else _code(f"{value:g}")


def _gateway_metrics() -> list[MetricRow]:
    registry = CollectorRegistry()
    EdgeMetrics(registry)
    CycleMetrics(registry)
    SessionFamilies(registry)
    WatchFamilies(registry)
    rows = metrics_table(registry)
    cluster = ClusterCollector(lambda: {"nodes": 0}, lambda: {"nodes": 0.0})
    for family in cluster.collect():
        labels = tuple(family.samples[0].labels)
        rows.append(
            MetricRow(name=family.name, type=family.type, labels=labels, help=family.documentation)
        )
    return rows


def _binder_metrics() -> list[MetricRow]:
    return _declared(
        binder_metrics.BINDS,
        binder_metrics.BIND_SECONDS,
        binder_metrics.BINDS_RUNNING,
        binder_metrics.BIND_RETRIES,
        binder_metrics.EVENTS,
    )


def _common_metrics() -> list[MetricRow]:
    return _declared(BUILD_INFO, CALLS, CALL_SECONDS)


def _declared(*collectors: Any) -> list[MetricRow]:
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return metrics_table(registry)
