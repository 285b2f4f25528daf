"""W3C trace contexts, as they come from anywhere."""

import pytest

from moorage_host.tracing.span import SpanContext, parse

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_context_is_read_as_it_is_written() -> None:
    root = SpanContext.root()
    assert parse(root.traceparent) == root
    assert parse(root.child().traceparent) != root
    assert parse(f"00-{TRACE}-{SPAN}-01") == SpanContext(int(TRACE, 16), int(SPAN, 16))
    assert parse(f"01-{TRACE}-{SPAN}-03-of-a-later-version") is not None


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
    assert parse(text) is None
