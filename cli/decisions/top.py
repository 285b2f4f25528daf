"""`moorage top`: reads a gateway again and again, shows each interval as JSON or on a terminal."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.shared.gateway.client import Gateway, connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.metrics import Change, Sample, sample
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import Form, is_for_programs, write
from gateway.decisions.why import OLD_SECONDS
from moorage_host.kube import KubeError

CALLS = "moorage_extender_request_duration_seconds"
PHASES = "moorage_cycle_duration_seconds"
QUEUE = "moorage_cycle_queue_seconds"
PLUGINS = "moorage_plugin_execution_duration_seconds"

NEWEST = 5
"""Pods that are shown."""

LOOKED_AT = 50
"""Decisions among which they are looked for: a pod may have many."""


class Work(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """How often something was done in each second, and how long it took, in seconds.

    Attributes:
        name: A verb, "filter phase", "score phase" or "queue".
        failed: How often it failed in each second; what is refused is no failure.
    """

    name: str
    rate: float
    p50: float | None = None
    p99: float | None = None
    failed: float = 0.0


class PluginWork(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What a plugin did.

    Attributes:
        rate: Cycles in each second.
        mean: Seconds that it took in one.
        rejected: Nodes that it rejected in each second.
        failed: Cycles that went on without it, or failed, in each second.
    """

    plugin: str
    phase: str
    rate: float
    mean: float | None = None
    p99: float | None = None
    rejected: float = 0.0
    failed: float = 0.0


class View(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """An interval of a gateway's work.

    Attributes:
        gateway: Its address, or its pod.
        seconds: How long the interval was.
        decides: Whether this gateway decides, or stands by.
        epoch: Of its newest term.
        nodes: How many it knows.
        pods: How many it knows.
        age: Seconds since the API server last sent something about nodes or pods, the longer.
        cycles: Scheduling cycles in each second, those from the cache too.
        services: Filter and scorer with their replicas, as `GET /replicas` has them.
        decisions: The newest ones, as `GET /decisions` has them.
    """

    gateway: str
    seconds: float
    decides: bool
    epoch: int
    nodes: int
    pods: int
    age: float
    cycles: float
    work: Sequence[Work]
    plugins: Sequence[PluginWork]
    services: Sequence[Any]
    decisions: Sequence[Any]


def view(change: Change, gateway: str, replicas: Any, decisions: Sequence[Any]) -> View:
    """Return what to show; *replicas* as `GET /replicas` has them."""
    return View(
        gateway=gateway,
        seconds=round(change.seconds, 3),
        decides=bool(change.now("moorage_leader")),
        epoch=int(change.now("moorage_term_epoch")),
        nodes=int(change.now("moorage_cache_size", type="nodes")),
        pods=int(change.now("moorage_cache_size", type="pods")),
        age=max(
            (
                change.now("moorage_cache_age_seconds", resource=resource)
                for (resource,) in change.values_of("moorage_cache_age_seconds", "resource")
            ),
            default=0.0,
        ),
        cycles=change.rate(f"{CALLS}_count", verb="filter"),
        work=[*_calls(change), *_phases(change)],
        plugins=_plugins(change),
        services=replicas["services"],
        decisions=decisions,
    )


def _calls(change: Change) -> list[Work]:
    return [
        Work(
            name=verb,
            rate=change.rate(f"{CALLS}_count", verb=verb),
            p50=change.quantile(0.5, CALLS, verb=verb),
            p99=change.quantile(0.99, CALLS, verb=verb),
            failed=change.rate("moorage_extender_requests_total", verb=verb)
            - change.rate("moorage_extender_requests_total", verb=verb, result="ok"),
        )
        for (verb,) in change.values_of(f"{CALLS}_count", "verb")
    ]


def _phases(change: Change) -> list[Work]:
    phases = [(f"{phase} phase", PHASES, {"phase": phase}) for phase in ("filter", "score")]
    return [
        Work(
            name=name,
            rate=change.rate(f"{metric}_count", **labels),
            p50=change.quantile(0.5, metric, **labels),
            p99=change.quantile(0.99, metric, **labels),
        )
        for name, metric, labels in [*phases, ("queue", QUEUE, {})]
    ]


def _plugins(change: Change) -> list[PluginWork]:
    found = []
    for plugin, phase in change.values_of(f"{PLUGINS}_count", "plugin", "phase"):
        labels = {"plugin": plugin, "phase": phase}
        rejected = change.rate("moorage_rejected_nodes_total", plugin=plugin)
        found.append(
            PluginWork(
                **labels,
                rate=change.rate(f"{PLUGINS}_count", **labels),
                mean=change.mean(PLUGINS, **labels),
                p99=change.quantile(0.99, PLUGINS, **labels),
                rejected=rejected if phase == "filter" else 0.0,
                failed=change.rate("moorage_plugin_failures_total", **labels),
            )
        )
    return sorted(found, key=lambda each: -(each.mean or 0.0) * each.rate)


# ---- drawn on a terminal

MOST_PLUGINS, MOST_REPLICAS = 12, 8

NUMBER = re.compile(r"(<?[\d.e+-]+( m?s| us)?)?$")
"""A number or a time, or nothing."""


def draw(view: View, *, wide: bool = False) -> RenderableType:
    """Return a view for a terminal, with all plugins and replicas if it is *wide*."""
    return Group(*_parts(view, wide=wide))


def _parts(view: View, *, wide: bool) -> Iterator[RenderableType]:
    role = "decides" if view.decides else "STANDS BY"
    yield Text(f"{view.gateway}  {role}, epoch {view.epoch}", style="bold", no_wrap=True)
    counts = f"{view.cycles:.1f} cycles/s  {view.nodes} nodes  {view.pods} pods"
    yield Text(counts, overflow="fold")
    if view.age > OLD_SECONDS:
        yield Text(f"API server silent for {view.age:.0f} s", style="bold red", overflow="fold")
    yield from _table(
        ("WORK", "/S", "P50", "P99", "FAIL/S"),
        [
            (each.name, f"{each.rate:.1f}", _time(each.p50), _time(each.p99), _few(each.failed))
            for each in view.work
        ],
    )
    yield from _table(
        ("PLUGIN", "PHASE", "/S", "MEAN", "P99", "REJ/S", "FAIL/S"),
        [
            (
                each.plugin,
                each.phase,
                f"{each.rate:.1f}",
                _time(each.mean),
                _time(each.p99),
                _few(each.rejected),
                _few(each.failed),
            )
            for each in view.plugins[: None if wide else MOST_PLUGINS]
        ],
    )
    yield from _table(
        ("SERVICE", "REPLICA", "GENERATION", "BEHIND", "CYCLES"),
        list(_replicas(view.services))[: None if wide else MOST_REPLICAS],
    )
    yield from _table(
        ("NEWEST PODS", "AGO", "OUTCOME", "NODE", "REASON"),
        [_decision(each) for each in view.decisions],
    )


def _replicas(services: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[str]]:
    for service in services:
        if not service["replicas"]:
            yield service["service"], service["problem"] or "no replica", "", "", ""
        for each in service["replicas"]:
            problem = "; ".join(each["problems"].values())
            name = f"{each['place'] or each['replica']}{f' ({problem})' if problem else ''}"
            numbers = (each["generation"], each["behind"], each["unanswered"])
            yield service["service"], name, *map(str, numbers)


def _decision(each: Mapping[str, Any]) -> Sequence[str]:
    ago = (datetime.now(UTC) - datetime.fromisoformat(each["time"])).total_seconds()
    return (
        f"{each['namespace']}/{each['pod']}",
        f"{max(ago, 0):.0f} s",
        each["outcome"],
        each.get("node") or "",
        each["reason"],
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
    """Yield a table below an empty line; where it is too wide, texts lose their ends."""
    yield Text("")
    if not rows:
        yield Text(f"{header[0]}  none yet", style="dim")
        return
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), collapse_padding=True
    )
    for name, *cells in zip(header, *rows, strict=True):
        is_number = all(map(NUMBER.match, cells))
        table.add_column(name, no_wrap=is_number, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    yield table


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} us"


def _few(rate: float) -> str:
    return f"{rate:.1f}" if rate >= 0.05 else ("0" if not rate else "<0.1")


# ---- read again and again


async def watch(options: GatewayOptions, *, once: bool, output: Form, interval: float) -> None:
    """Show intervals until cancelled, or one.

    Raises:
        GatewayError: The gateway cannot be asked at first; later that is shown.
    """
    console = Console(markup=False, emoji=False, highlight=False)
    is_data = is_for_programs(output)
    with ExitStack() as stack:
        screen: Live | None = None
        if console.is_terminal and not once and not is_data:
            screen = stack.enter_context(Live(console=console, screen=True, auto_refresh=False))
        async with aclosing(_views(options, interval)) as views:
            async for found, problem in views:
                if is_data:
                    if found is not None and not problem:
                        write(found, output, one_of_many=True)
                else:
                    problems = [Text(problem, style="bold red")] if problem else []
                    drawn = [draw(found, wide=output == "wide")] if found else []
                    shown = Group(*problems, *drawn)
                    if screen is None:
                        console.print(shown)
                    else:
                        screen.update(shown, refresh=True)
                if once:
                    return


async def _views(
    options: GatewayOptions, interval: float
) -> AsyncGenerator[tuple[View | None, str]]:
    """Yield the newest view after each interval, and what is wrong since; connect again then."""
    last: View | None = None
    while True:
        try:
            async with connected(options) as gateway:
                before = await _read(gateway)
                while True:
                    await asyncio.sleep(interval)
                    after = await _read(gateway)
                    last = await _view(gateway, Change(before, after))
                    yield last, ""
                    before = after
        except (GatewayError, KubeError) as error:
            if last is None:
                raise
            yield last, str(error)
            await asyncio.sleep(interval)


async def _read(gateway: Gateway) -> Sample:
    text = await gateway.text("/metrics")
    try:
        found = sample(text, time.monotonic())
    except ValueError as error:
        raise GatewayError(f"{gateway.place}/metrics has no metrics: {error}") from error
    if not found.values:
        raise GatewayError(f"{gateway.place}/metrics has no metrics of Moorage")
    return found


async def _view(gateway: Gateway, change: Change) -> View:
    replicas, decisions = await asyncio.gather(gateway.get("/replicas"), newest(gateway))
    return view(change, gateway.place, replicas, decisions)


async def newest(gateway: Gateway) -> Sequence[Any]:
    """Return the newest decision about each of the pods that were decided on last."""
    found = await gateway.get("/decisions", {"limit": str(LOOKED_AT)})
    pods: dict[tuple[str, str], Any] = {}
    for each in found["items"]:
        pods.setdefault((each["namespace"], each["pod"]), each)
    return list(pods.values())[:NEWEST]
