"""What the tables of the documentation say, from the code itself. `generate` puts them there."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import click
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from cli.doctor.check import about, name_of
from cli.doctor.checks import GROUPS
from cli.main import main
from cli.shared.gateway.options import gateway_options
from gateway.binding.unknown import settled_binds
from gateway.cluster.metrics import ClusterCollector, WatchMetrics
from gateway.edge.metrics import EdgeMetrics
from gateway.leadership.leadership import TermMetrics
from gateway.leadership.term import Term
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.reload import ReloadMetrics
from gateway.scheduling.metrics import CycleMetrics
from gateway.scheduling.rejected import retried_pods
from gateway.settings import GatewaySettings
from gateway.whatif.shadow_tally import ShadowMetrics
from moorage.measurements.prometheus import gauges
from moorage_host.http.requests import REFUSED
from moorage_host.process.histogram import FastHistogram
from moorage_host.process.lifecycle import AdminSettings, ProcessSettings
from moorage_host.process.log_writer import DROPS
from moorage_host.process.metrics import (
    BACKGROUND_FAILURES,
    BUILD_INFO,
    CALL_SECONDS,
    CALLS,
    PAUSES,
    TASKS,
)
from moorage_host.rpc.serve import ServerSettings
from moorage_host.rpc.settings import CycleSettings
from moorage_host.settings import Dataclass, Setting, declared_settings
from moorage_host.tls.certificate import EXPIRY, RELOADS, START
from moorage_host.tls.identities import METHODS
from moorage_host.tracing.spans import SPANS
from sandbox.apiserver.settings import Settings as ApiServerSettings
from sandbox.scheduler.__main__ import SchedulerSettings
from services.annotator import rounds as annotator_metrics
from services.annotator.settings import AnnotatorSettings
from services.binder import metrics as binder_metrics
from services.binder.settings import BinderSettings
from tools.docs.api_tables import api
from tools.docs.bench_tables import cost, sizing
from tools.docs.pages import Row, code, escaped, table
from tools.docs.plugin_tables import arguments, in_tree, plugins

SETTINGS: Mapping[str, tuple[type[Dataclass], type[Dataclass] | None]] = {
    "process": (ProcessSettings, None),
    "admin": (AdminSettings, ProcessSettings),
    "server": (ServerSettings, AdminSettings),
    "gateway": (GatewaySettings, AdminSettings),
    "filter and scorer": (CycleSettings, ServerSettings),
    "binder": (BinderSettings, ServerSettings),
    "annotator": (AnnotatorSettings, AdminSettings),
    "api-server": (ApiServerSettings, ProcessSettings),
    "kube-scheduler": (SchedulerSettings, ProcessSettings),
}
"""For each table of settings the class that it shows, and the one whose settings are elsewhere."""

GATEWAY_METRICS: tuple[Callable[[CollectorRegistry], object], ...] = (
    EdgeMetrics,
    CycleMetrics,
    ReloadMetrics,
    ShadowMetrics,
    ReplicaMetrics,
    WatchMetrics,
    retried_pods,
    settled_binds,
)


def settings(name: str) -> str:
    """Return the settings that a kind of process adds to those of all, or has otherwise."""
    cls, base = SETTINGS[name]
    elsewhere = list(declared_settings(base)) if base else []
    rows = [each for each in declared_settings(cls) if each not in elsewhere]
    return table(
        ("option", "default", "meaning"),
        ((code(s.option), code(s.show(s.default)), escaped(_meaning(s))) for s in rows),
    )


def _meaning(setting: Setting) -> str:
    """Return what a setting is for, with its unit and bounds; its variable follows a rule."""
    assert setting.variable == f"MOORAGE_{setting.option[2:].upper().replace('-', '_')}"
    _, _, allowed = setting.meaning.partition(" Allowed: ")
    bounds = re.sub(r"^(?:a duration such as 500ms or 1m30s|an integer|a number), ", "", allowed)
    bounds = re.sub(r"^at least (?:0s?|1)(?:, |$)", "", bounds.rstrip("."))  # goes without saying
    unit = setting.unit if setting.unit in ("bytes", "percent") else ""  # others are evident
    bounds = bounds.removesuffix("at most 65535")  # of ports
    notes = ", ".join(filter(None, (unit, bounds)))
    return setting.help + (f" ({notes})" if notes else "")


def metrics(name: str) -> str:
    """Return the metrics of a kind of process."""
    rows = sorted(row for collector in METRICS[name]() for row in _families(collector))
    return table(
        ("name", "type", "labels", "meaning"),
        ((code(n), kind, ", ".join(map(code, labels)), escaped(h)) for n, kind, labels, h in rows),
    )


def command(name: str) -> str:
    """Return the parameters of a command of the command line, such as "config show"."""
    found: click.Command = main
    for part in name.split():
        assert isinstance(found, click.Group)
        found = found.commands[part]
    shared = {each for each, _ in connection_options()}
    connects = code("--admin URL") in shared and any(p.name == "admin" for p in found.params)
    rows = [row for row in _parameters(found) if not connects or row[0] not in shared]
    note = ("[those of a gateway](#connecting-to-a-gateway)", "") if connects else None
    return table(("parameter", "meaning"), [*rows, *([note] if note else [])])


def connection(_: str) -> str:
    """Return the options of commands that ask a gateway."""
    return table(("option", "meaning"), connection_options())


def connection_options() -> list[Row]:
    """Return the parameters that `gateway_options` adds to a command."""
    bare = click.Command("none", callback=gateway_options(lambda **_: None))
    options = getattr(bare.callback, "__click_params__", [])
    return [*_parameters(click.Command("none", params=[*reversed(options)]))]


def methods(_: str) -> str:
    """Return who may call each gRPC method."""
    who = {"gateway": "gateway", "operator": "people", "anyone": "everybody with a certificate"}
    rows: dict[tuple[str, str], list[str]] = {}
    for method, roles in METHODS.items():
        service, _, name = method.partition("/")
        allowed = ", ".join(who[role] for role in roles) or "nobody"
        rows.setdefault((service, allowed), []).append(name)
    return table(
        ("service", "methods", "who may call them"),
        (
            (code(service), ", ".join(map(code, names)), allowed)
            for (service, allowed), names in rows.items()
        ),
    )


def doctor(_: str) -> str:
    """Return the checks of `moorage doctor`."""
    return table(
        ("", "check", "ok if"),
        (
            (group if not number else "", code(name_of(check)), escaped(about(check)))
            for group, checks in GROUPS.items()
            for number, check in enumerate(checks)
        ),
    )


TABLES: Mapping[str, Callable[[str], str]] = {
    "api": api,
    "settings": settings,
    "metrics": metrics,
    "plugins": plugins,
    "arguments": arguments,
    "doctor": doctor,
    "in-tree": in_tree,
    "methods": methods,
    "command": command,
    "connection": connection,
    "cost": cost,
    "sizing": sizing,
}


POSITIONAL = {
    "new-plugin NAME": "The plugin's class name, such as MaxTemperature.",
    "new-plugin [DIR]": "Where to write; default: here, with --package a new folder of the "
    "project's name.",
    "convert-policy FILE": "The Policy, in JSON or YAML.",
    "explain [[NAMESPACE/]POD]": "The pod; leave it out with --pending.",
    "shadow [PROFILE]": "Default: every profile with a shadow.",
    "validate FILE...": "The policies.",
    "extender FILE": "The policy.",
    "show [FILE]": "The policy.",
    "completion SHELL": "bash, zsh or fish.",
}
"""What a command's arguments are; click has help for options alone."""


def _parameters(found: click.Command) -> Iterator[Row]:
    for parameter in found.params:
        if isinstance(parameter, click.Argument):
            metavar = parameter.make_metavar(click.Context(found))
            yield code(metavar), POSITIONAL[f"{found.name} {metavar}"]
        elif isinstance(parameter, click.Option):
            metavar = "" if parameter.is_flag else f" {_metavar(parameter, found)}"
            text, _, default = (parameter.help or "").removesuffix("]").partition("[default: ")
            if parameter.opts[0] == "-o":  # the page explains it once
                metavar, wide = " FORMAT", text.removeprefix("wide is text that ")
                wide = wide.removesuffix("json and yaml have everything.").removesuffix("; ")
                text = f"`wide` {wide}." if wide else "Not `wide`."
            elif default := default or _default(parameter):
                text = f"{text.strip()} Default: {default}."
            yield code(parameter.opts[0] + metavar), escaped(text.strip())


def _metavar(option: click.Option, found: click.Command) -> str:
    return option.make_metavar(click.Context(found)).replace("|", " or ").removesuffix(" RANGE")


def _default(option: click.Option) -> str:
    value = option.to_info_dict()["default"]
    if option.is_flag or not isinstance(value, str | int | float | Path):
        return ""
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def _gateway_metrics() -> Iterable[Collector]:
    registry = CollectorRegistry()
    for make_metrics in GATEWAY_METRICS:
        make_metrics(registry)
    TermMetrics(registry, Term())
    # The registry has no public way to see labels of metrics that have no values yet.
    return [
        *registry._collector_to_names,
        ClusterCollector(lambda: {"nodes": 0}, lambda: {"nodes": 0.0}, lambda: {"default": 0}),
    ]


def _collectors_of(module: ModuleType) -> Iterable[Collector]:
    return [
        each
        for each in vars(module).values()
        if isinstance(each, MetricWrapperBase | FastHistogram)
    ]


METRICS: Mapping[str, Callable[[], Iterable[Collector]]] = {
    "gateway": _gateway_metrics,
    "binder": lambda: _collectors_of(binder_metrics),
    "annotator": lambda: _collectors_of(annotator_metrics),
    "common": lambda: (
        *(BUILD_INFO, CALLS, CALL_SECONDS, DROPS, PAUSES.histogram, TASKS),
        *(REFUSED, START, EXPIRY, RELOADS),
    ),
    "plugins": lambda: (
        BACKGROUND_FAILURES,
        *(gauges.POLLS, gauges.LAST_ANSWER, gauges.NODES),
    ),
    "tracing": lambda: (SPANS,),
}


def _families(collector: Collector) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield name, type, labels and meaning of what a collector has."""
    for family in collector.collect():
        labels = getattr(collector, "_labelnames", None)
        if labels is None:
            labels = family.samples[0].labels
        suffix = "_total" if family.type == "counter" else ""
        yield family.name + suffix, family.type, tuple(labels), family.documentation
