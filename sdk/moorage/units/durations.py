"""Go's duration strings ("500ms", "1m30s"): what people who configure Kubernetes write.

Used by the settings of every process and by the policy document. Inside Moorage a duration is a
float in seconds.
"""

import re

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # Greek mu: Go accepts both
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"[+-]?(?:{_PART.pattern})+")
_LONGEST = 256  # characters that are read, and quoted
_MOST = 2**63  # nanoseconds, as in Go
_LONG = (("h", 3_600_000_000_000), ("m", 60_000_000_000))
_SHORT = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1))


def parse_duration(text: str) -> float:
    """Return the seconds that a Go duration string stands for.

    Raises:
        ValueError: The text is not in Go's form; the message describes it.
    """
    unsigned = text.lstrip("+-")
    if unsigned == "0" and len(text) <= 2:  # Go lets zero go without a unit
        return 0.0
    if len(text) > _LONGEST or not _WHOLE.fullmatch(text):
        got = text[:_LONGEST]
        raise ValueError(f'expected a duration such as "500ms", "5s" or "1m30s", got "{got}"')
    nanoseconds = sum(float(number) * _NANOSECONDS[unit] for number, unit in _PART.findall(text))
    if nanoseconds >= _MOST:
        raise ValueError(f'expected a duration of at most 292 years, got "{text}"')
    return (-nanoseconds if text.startswith("-") else nanoseconds) / 1e9


def format_duration(seconds: float) -> str:
    """Return the shortest usual form of a duration, to the nanosecond: "500ms", "1m30s", "0s"."""
    rest = round(abs(seconds) * 1e9)
    if rest == 0:
        return "0s"
    text = "-" if seconds < 0 else ""
    for unit, size in _LONG:
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text + (_format_below_a_minute(rest) if rest else "")


def _format_below_a_minute(nanoseconds: int) -> str:
    unit, size = next((unit, size) for unit, size in _SHORT if nanoseconds >= size)
    whole, fraction = divmod(nanoseconds, size)
    digits = f"{fraction:0{len(str(size)) - 1}d}".rstrip("0") if fraction else ""
    return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
