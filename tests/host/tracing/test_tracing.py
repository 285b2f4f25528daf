"""Trace contexts as they come from anywhere, where spans go, and what becomes of them."""

import re
import sys

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from moorage_host.tracing.sink import sending_spans
from moorage_host.tracing.spans import SPANS, sampled, span, traceparent
from tests.collector import collecting

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("text", [f"00-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-03-of-a-later-one"])
def test_a_context_is_read_as_it_is_written(text: str) -> None:
    context = sampled(text)
    assert context is not None
    named = trace.get_current_span(context)
    assert traceparent(named) == f"00-{TRACE}-{SPAN}-{text[53:55]}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}-00",  # not sampled
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        "\0" * 55,
        "0" * 100_000,
    ],
)
def test_what_is_no_context_or_is_not_sampled_traces_nothing(text: str) -> None:
    assert sampled(text) is None


VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"


def count(outcome: str) -> float:
    return REGISTRY.get_sample_value(SPANS._name + "_total", {"outcome": outcome}) or 0.0


async def problem_of_tracing() -> str:
    """Return why a process has no traces, though its variables ask for them; it runs without."""
    with capture_logs() as logs:
        async with sending_spans("filter") as tracer:
            assert tracer is None
    (line,) = logs
    assert (line["log_level"], line["variable"]) == ("warning", VARIABLE)
    return str(line["problem"])


async def test_spans_are_sent_when_a_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv(VARIABLE, collector.url)
        async with sending_spans("filter") as tracer:
            assert tracer is not None
            with span(tracer, "work", Context()):
                assert traceparent()
        assert [(each.service, each.name) for each in collector.spans] == [
            ("moorage-filter", "work")
        ]


async def test_spans_are_dropped_and_counted_where_nobody_takes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = count("dropped")
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")  # else it tries for 10 s, in a thread
    async with sending_spans("filter", queue=2, flush_seconds=0.1) as tracer:
        assert tracer is not None
        for _ in range(5):
            with span(tracer, "work", Context()):
                pass
        assert count("dropped") == before + 3


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("collector:4318", "is no URL such as"),
        ("http://[", "is no URL such as"),
        ("http://collector:99999", "is no URL such as"),
        ("ftp://127.0.0.1", "is no URL such as"),
        ("http://me:secret@127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("http://collector:4318", "in plain text.*OTEL_EXPORTER_OTLP_INSECURE=true"),
    ],
)
async def test_an_endpoint_that_cannot_be_used_is_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, url: str, problem: str
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    assert re.search(problem, await problem_of_tracing())


async def test_plain_text_goes_to_other_machines_where_it_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "http://collector:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
    async with sending_spans("filter", flush_seconds=0.1) as tracer:
        assert tracer is not None


async def test_without_the_extra_the_log_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "moorage_host.tracing.otel", raising=False)
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:4318")
    assert "pip install '.[otel]' in a clone" in await problem_of_tracing()


async def test_nothing_is_sent_by_default_or_where_the_sdk_is_disabled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with sending_spans("filter") as tracer:
        assert tracer is None
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:1")
    async with sending_spans("filter") as tracer:
        assert tracer is None
