"""Whether there is an answer at all, in time, and how it is framed."""

from collections.abc import Iterator

from cli.conformance.findings import UP_TO_GO_1_26, Finding, Severity
from cli.conformance.judging.exchanges import Exchange, failed_call

SLOW_SHARE = 0.8
"""A call that takes more of httpTimeout is reported."""


def call_failure(exchange: Exchange) -> Finding | None:
    """Return a finding if kube-scheduler gets no answer with status 200."""
    answer, (severity, consequence) = exchange.answer, failed_call(exchange)
    if answer.failure:
        return exchange.finding(severity, f"has no answer and {consequence}")
    if answer.status in (301, 302, 303):
        return exchange.finding(
            severity, f"follows the redirect with a GET without the body, and {consequence}"
        )
    if answer.status != 200:
        text = f"reads no body of a status {answer.status}, and {consequence}"
        if answer.status in (404, 405):
            text += " (if the extender has no such verb, leave it out of --verbs)"
        return exchange.finding(severity, text)
    return None


def framing(exchange: Exchange) -> Iterator[Finding]:
    """Yield what is unusual about the HTTP of an answer."""
    answer, headers = exchange.answer, exchange.answer.headers
    if answer.redirects:
        yield exchange.finding(
            Severity.STYLE,
            "sends the request again after each redirect",
            check="http-redirect",
            got=f"redirects {', '.join(map(str, answer.redirects))}",
        )
    if headers.get("Connection", "").lower() == "close":
        yield exchange.finding(
            Severity.STYLE, "opens a new connection for each call", check="http-keep-alive",
            got="Connection: close",
        )  # fmt: skip
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        yield exchange.finding(
            Severity.STYLE,
            "may not read the last chunk, and then closes the connection instead of using it again",
            check="http-framing",
            got="Transfer-Encoding: chunked",
            versions=UP_TO_GO_1_26,
        )
    limit = exchange.config.timeout
    if limit and answer.seconds > SLOW_SHARE * limit:
        yield exchange.finding(
            Severity.STYLE,
            f"gives up after {limit:g} s; a busier machine is over that",
            check="http-in-time",
            got=f"an answer after {answer.seconds:.2f} s",
        )
