"""Trace contexts as W3C writes them, spans as plain values, and the span of the call under way.

Spans are made when their work has ended, so work that is not traced costs nothing. What does not
see the request, such as the spans of plugins, takes the span of the task of the call (`current`),
which goes with the tasks that this one creates.
"""

import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import Literal, Protocol

import msgspec
from prometheus_client import Counter

from moorage.execution import PluginRun

Value = str | int | float | bool

Kind = Literal["internal", "server"]

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1

SPANS = Counter(
    "moorage_spans_total",
    "Spans of sampled traces: sent, failed (the collector refused), dropped (too many waited).",
    ("outcome",),
)


class SpanContext(msgspec.Struct, frozen=True):
    """Names a span of a trace that is sampled."""

    trace_id: int
    span_id: int

    @classmethod
    def root(cls) -> "SpanContext":
        """Return the context of the first span of a new trace."""
        return cls(_random(128), _random(64))

    def child(self) -> "SpanContext":
        """Return the context of another span of the same trace."""
        return SpanContext(self.trace_id, _random(64))

    @property
    def traceparent(self) -> str:
        """The same as W3C writes it."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"


def parse(traceparent: str) -> SpanContext | None:
    """Return what a text names; None if it is no trace context, or of a trace that is not sampled.

    A later version of the format may have more fields.
    """
    match = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    if match is None or (match[4] and traceparent.startswith("00")):
        return None
    context = SpanContext(int(match[1], 16), int(match[2], 16))
    is_sampled = int(match[3], 16) & _SAMPLED
    return context if is_sampled and context.trace_id and context.span_id else None


def trace_id_of(traceparent: str) -> str:
    """Return the id of the trace that a context names, as W3C writes it."""
    return traceparent.split("-")[1]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Work that has ended.

    Attributes:
        name: What it was.
        context: Names the span.
        parent: The id of the span that it belongs to; 0 if it is the first of its trace.
        start: When it began, in nanoseconds of Unix time.
        end: When it ended.
        attributes: What else is known.
        kind: Whether it answers another process.
        error: Why it failed; empty if it did not.
        link: A span of another trace that led to it.
    """

    name: str
    context: SpanContext
    parent: int = 0
    start: int
    end: int
    attributes: Mapping[str, Value] = {}
    kind: Kind = "internal"
    error: str = ""
    link: SpanContext | None = None


class SpanSink(Protocol):
    """Takes spans; returns at once, and never raises."""

    def add(self, span: Span) -> None:
        """Have a span sent, or drop it if too many wait."""


def unix_nanos(seconds: float) -> int:
    """Return when `time.perf_counter()` had a value, in nanoseconds of Unix time."""
    return time.time_ns() - int((time.perf_counter() - seconds) * 1e9)


def _random(bits: int) -> int:
    return secrets.randbits(bits) or 1  # zero is no id


NOTHING: Mapping[str, Value] = MappingProxyType({})


class Current(msgspec.Struct, frozen=True, eq=False):
    """A span that has not ended, and where spans go."""

    context: SpanContext
    sink: SpanSink


_current: ContextVar[Current | None] = ContextVar("span", default=None)


def current() -> Current | None:
    """Return the span of the call that is under way; None if it is not traced."""
    return _current.get()


def traceparent() -> str:
    """Return the same as W3C writes it; "" if the call is not traced."""
    found = _current.get()
    return found.context.traceparent if found is not None else ""


@contextmanager
def span(
    sink: SpanSink,
    parent: SpanContext | None,
    name: str,
    *,
    kind: Kind = "internal",
    start: float | None = None,
    link: SpanContext | None = None,
    attributes: Mapping[str, Value] = NOTHING,
) -> Iterator[dict[str, Value]]:
    """Have a span while the block lasts; yield its attributes, to which the block may add.

    Args:
        sink: Takes the span.
        parent: What it belongs to; None if it is the first of its trace.
        name: What the block does.
        kind: Whether it answers another process.
        start: When it began, by `time.perf_counter()`; now, if not given.
        link: A span of another trace that led to it.
        attributes: What else is known.
    """
    context = SpanContext.root() if parent is None else parent.child()
    token = _current.set(Current(context, sink))
    begin_nanos, error = unix_nanos(time.perf_counter() if start is None else start), ""
    about = dict(attributes)
    try:
        yield about
    except BaseException as failure:
        error = str(failure) or type(failure).__name__
        raise
    finally:
        _current.reset(token)
        sink.add(
            Span(
                name=name,
                context=context,
                parent=0 if parent is None else parent.span_id,
                start=begin_nanos,
                end=time.time_ns(),
                link=link,
                attributes=about,
                kind=kind,
                error=error,
            )
        )


def step(name: str) -> AbstractContextManager[object]:
    """Have a span while the block lasts, if the call that is under way is traced."""
    found = _current.get()
    return nullcontext() if found is None else span(found.sink, found.context, name)


def plugin_spans(runs: Iterable[PluginRun]) -> None:
    """Have spans of what plugins did in the call that is under way, if it is traced."""
    found = _current.get()
    if found is None:
        return
    for run in runs:
        extra = {"moorage.skipped": True} if run.skipped else NOTHING
        plugin_span(found, run.plugin, run.start, run.seconds, run.failure, extra)


def plugin_span(
    parent: Current,
    plugin: str,
    start: float,
    seconds: float,
    error: str = "",
    attributes: Mapping[str, Value] = NOTHING,
) -> None:
    """Have a span of what one plugin did from *start*, by `time.perf_counter()`."""
    begin_nanos = unix_nanos(start)
    parent.sink.add(
        Span(
            name=f"plugin {plugin}",
            context=parent.context.child(),
            parent=parent.context.span_id,
            start=begin_nanos,
            end=begin_nanos + int(seconds * 1e9),
            attributes={"moorage.plugin": plugin, **attributes},
            error=error,
        )
    )
