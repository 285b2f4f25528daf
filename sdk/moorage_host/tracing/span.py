"""Trace contexts as W3C writes them, and spans as plain values.

Spans are made when their work has ended, so work that is not traced costs nothing.
"""

import re
import secrets
import time
from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

Value = str | int | float | bool

Kind = Literal["internal", "server"]

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


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
