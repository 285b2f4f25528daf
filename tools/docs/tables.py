"""What the tables of the documentation say, from the code itself. `generate` puts them there."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
from prometheus_client import CollectorRegistry

from cli.doctor.check import about, name_of
from cli.doctor.groups import GROUPS
from cli.legacy.names import (
    MANDATORY,
    PREDICATE_REMARKS,
    PREDICATES,
    PRIORITIES,
    PRIORITY_REMARKS,
    STRATEGIES,
)
from cli.main import main
from gateway.binding.unknown import settled_binds
from gateway.cluster.metrics import ClusterCollector, WatchMetrics
from gateway.edge.metrics import EdgeMetrics
from gateway.journal.metrics import JournalMetrics
from gateway.leadership.leadership import TermMetrics
from gateway.leadership.term import Term
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.reload import ReloadMetrics
from gateway.scheduling.metrics import CycleMetrics
from gateway.scheduling.rejected import retried_pods
from gateway.settings import GatewaySettings
from gateway.whatif.shadow_tally import ShadowMetrics
from moorage.measurements.prometheus import gauges
from moorage_host.http.refusals import REFUSED
from moorage_host.process.lifecycle import AdminSettings, ProcessSettings
from moorage_host.process.log_writer import DROPS
from moorage_host.process.metrics import (
    BACKGROUND_FAILURES,
    BUILD_INFO,
    CACHE_DIFFERENCES,
    CALL_SECONDS,
    CALLS,
    MetricRow,
    metrics_table,
)
from moorage_host.process.pauses import PAUSES
from moorage_host.rpc.serve import ServerSettings
from moorage_host.rpc.session import CycleSettings
from moorage_host.settings import SettingRow, settings_table
from moorage_host.settings.fields import Dataclass
from moorage_host.tls.authorization import METHODS
from moorage_host.tls.reload import EXPIRY, RELOADS, START
from moorage_host.tracing.metrics import SPANS
from sandbox.apiserver.resources.builtin import BUILT_IN
from sandbox.apiserver.settings import Settings as ApiServerSettings
from sandbox.scheduler.__main__ import Settings as SchedulerSettings
from services.annotator import metrics as annotator_metrics
from services.annotator.settings import AnnotatorSettings
from services.binder import metrics as binder_metrics
from services.binder.settings import BinderSettings
from tools.docs.api_tables import api
from tools.docs.conformance_tables import conformance
from tools.docs.cost_tables import cost
from tools.docs.markdown import Row, code, escaped, table
from tools.docs.pages import ROOT
from tools.docs.plugin_tables import arguments, in_tree, plugins
from tools.docs.proto_tables import protos
from tools.docs.sizing_tables import sizing

SETTINGS: Mapping[str, tuple[type[Dataclass], type[Dataclass] | None]] = {
    "process": (ProcessSettings, None),
    "admin": (AdminSettings, ProcessSettings),
    "server": (ServerSettings, AdminSettings),
    "gateway": (GatewaySettings, AdminSettings),
    "filter": (CycleSettings, ServerSettings),
    "scorer": (CycleSettings, ServerSettings),
    "binder": (BinderSettings, ServerSettings),
    "annotator": (AnnotatorSettings, AdminSettings),
    "api-server": (ApiServerSettings, ProcessSettings),
    "kube-scheduler": (SchedulerSettings, ProcessSettings),
}
"""For each table of settings the class that it shows, and the one whose settings are elsewhere."""


def settings(name: str) -> str:
    """Return the settings that a kind of process adds to those of all, or has otherwise."""
    cls, base = SETTINGS[name]
    elsewhere = settings_table(base) if base else []
    rows = [row for row in settings_table(cls) if row not in elsewhere]
    return table(
        ("option", "environment variable", "default", "unit", "meaning"),
        ((code(r.option), code(r.environment), code(r.default), r.unit, _meaning(r)) for r in rows),
    )


def metrics(name: str) -> str:
    """Return the metrics of a kind of process."""
    rows = {
        "gateway": _gateway_metrics,
        "binder": _binder_metrics,
        "annotator": _annotator_metrics,
        "common": _common_metrics,
        "plugins": _plugin_metrics,
        "tracing": _tracing_metrics,
    }
    return table(
        ("name", "type", "labels", "meaning"),
        (
            (code(r.name), r.type, ", ".join(map(code, r.labels)), escaped(r.help))
            for r in sorted(rows[name](), key=lambda row: row.name)
        ),
    )


def make(_: str) -> str:
    """Return the targets of the Makefile."""
    targets = re.findall(r"^([a-z0-9-]+):.*?## (.+)$", (ROOT / "Makefile").read_text(), re.M)
    return table(("target", "what it does"), ((code(f"make {t}"), text) for t, text in targets))


def command(name: str) -> str:
    """Return the parameters of a command of the command line, such as "config show"."""
    found: click.Command = main
    for part in name.split():
        assert isinstance(found, click.Group)
        found = found.commands[part]
    return table(("parameter", "default", "meaning"), _parameters(found))


def resources(_: str) -> str:
    """Return what the embedded API server serves without a custom resource definition."""
    groups: dict[str, list[str]] = {}
    for resource in BUILT_IN:
        subresources = ", ".join(code(name) for name in resource.subresources)
        shown = f"{resource.plural} ({subresources})" if subresources else resource.plural
        groups.setdefault(resource.api_version, []).append(shown)
    return table(("group", "resources"), ((key, ", ".join(each)) for key, each in groups.items()))


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


def legacy(name: str) -> str:
    """Return what each predicate or priority became."""
    return {"predicates": _predicates, "priorities": _priorities}[name]()


def _predicates() -> str:
    return table(
        ("predicate", "filter today", "remark"),
        (
            (
                code(name),
                ", ".join(map(code, filters)),
                PREDICATE_REMARKS.get(name, "")
                or ("always on" if filters[0] in MANDATORY and len(filters) == 1 else ""),
            )
            for name, filters in PREDICATES.items()
        ),
    )


def _priorities() -> str:
    return table(
        ("priority", "score today", "remark"),
        (
            (code(name), _upstream(name, plugin), _remark(name))
            for name, plugin in PRIORITIES.items()
        ),
    )


def _upstream(name: str, plugin: str | None) -> str:
    if plugin is None:
        return "none"
    return f"{code(plugin)}, {code(STRATEGIES[name])}" if name in STRATEGIES else code(plugin)


def _remark(name: str) -> str:
    return escaped(PRIORITY_REMARKS.get(name, ""))


TABLES: Mapping[str, Callable[[str], str]] = {
    "api": api,
    "protos": protos,
    "settings": settings,
    "metrics": metrics,
    "plugins": plugins,
    "arguments": arguments,
    "doctor": doctor,
    "in-tree": in_tree,
    "legacy": legacy,
    "make": make,
    "methods": methods,
    "command": command,
    "conformance": conformance,
    "resources": resources,
    "cost": cost,
    "sizing": sizing,
}


def _meaning(row: SettingRow) -> str:
    return escaped(row.meaning)


def _parameters(found: click.Command) -> Iterator[Row]:
    for parameter in found.params:
        if isinstance(parameter, click.Argument):
            optional = "" if parameter.required else "optional"
            yield code(parameter.make_metavar(click.Context(found))), optional, ""
        elif isinstance(parameter, click.Option):
            metavar = "" if parameter.is_flag else f" {_metavar(parameter, found)}"
            text, _, default = (parameter.help or "").removesuffix("]").partition("[default: ")
            yield (
                code(parameter.opts[0] + metavar),
                code(default) or _default(parameter),
                escaped(text.strip()),
            )


def _metavar(option: click.Option, found: click.Command) -> str:
    return option.make_metavar(click.Context(found)).replace("|", " or ").removesuffix(" RANGE")


def _default(option: click.Option) -> str:
    value = option.to_info_dict()["default"]
    if option.is_flag or not isinstance(value, str | int | float):
        return ""
    return code(f"{value:g}" if isinstance(value, float) else f"{value}")


def _gateway_metrics() -> list[MetricRow]:
    registry = CollectorRegistry()
    EdgeMetrics(registry)
    CycleMetrics(registry)
    ReloadMetrics(registry)
    ShadowMetrics(registry)
    ReplicaMetrics(registry)
    WatchMetrics(registry)
    retried_pods(registry)
    settled_binds(registry)
    TermMetrics(registry, Term())
    JournalMetrics(registry)
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
        binder_metrics.BARRIER_SECONDS,
        binder_metrics.BINDS,
        binder_metrics.EPOCH,
        binder_metrics.FENCED,
        binder_metrics.BIND_SECONDS,
        binder_metrics.BINDS_RUNNING,
        binder_metrics.BIND_RETRIES,
        binder_metrics.PLUGIN_SECONDS,
        binder_metrics.PLUGIN_RESULTS,
        binder_metrics.PERMIT_WAITING,
        binder_metrics.PERMIT_SECONDS,
        binder_metrics.EVENTS,
    )


def _annotator_metrics() -> list[MetricRow]:
    return _declared(
        annotator_metrics.ROUNDS,
        annotator_metrics.SAMPLES,
        annotator_metrics.PATCHES,
        annotator_metrics.NODES,
        annotator_metrics.LAST_SUCCESS,
    )


def _common_metrics() -> list[MetricRow]:
    process = (BUILD_INFO, CALLS, CALL_SECONDS, DROPS, PAUSES.histogram)
    return _declared(*process, REFUSED, START, EXPIRY, RELOADS)


def _plugin_metrics() -> list[MetricRow]:
    plugins = (BACKGROUND_FAILURES, CACHE_DIFFERENCES)
    return _declared(*plugins, gauges.POLLS, gauges.LAST_ANSWER, gauges.NODES)


def _tracing_metrics() -> list[MetricRow]:
    return _declared(SPANS)


def _declared(*collectors: Any) -> list[MetricRow]:
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return metrics_table(registry)
