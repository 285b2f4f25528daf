"""The span of a call that is under way, for what does not see the request: plugins' spans.

It goes with the task of the call, and with tasks that this one creates.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType

import msgspec

from moorage.execution import PluginRun
from moorage_host.tracing.span import Kind, Span, SpanContext, SpanSink, Value, unix_nanos

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
