"""Reads what lists on the admin port are asked for; refuses what it does not know."""

import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import get_args

import msgspec
from aiohttp import web

from gateway.cycle.decision import Outcome
from gateway.decisions.log import Attempt
from gateway.decisions.sentences import Facts
from moorage.errors import MoorageError
from moorage.units.durations import parse_duration

DEFAULT_LIMIT = 100
MOST = 1000
"""Decisions in an answer."""

OUTCOMES = get_args(Outcome)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

Parameters = Iterable[tuple[str, str]]
"""The parameters of a request with their values, in its order."""


class BadQueryError(MoorageError):
    """A parameter is not known, or its value cannot be used."""


class DecisionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions are wanted; "" stands for any.

    Attributes:
        since: In seconds since 1970, like `until`.
        limit: How many at most.
        after: The id of the decision that the list goes on after.
    """

    id: str = ""
    namespace: str = ""
    pod: str = ""
    node: str = ""
    plugin: str = ""
    outcome: str = ""
    profile: str = ""
    since: float = -math.inf
    until: float = math.inf
    limit: int = DEFAULT_LIMIT
    after: str = ""

    def may_match(self, attempt: Attempt) -> bool:
        """Whether an attempt is wanted, as far as it shows before one looks into the decision."""
        return (
            (not self.namespace or self.namespace == attempt.namespace)
            and (not self.pod or self.pod == attempt.pod)
            and (not self.profile or self.profile == attempt.profile)
            and self.since <= attempt.time <= self.until
        )

    def matches(self, facts: Facts) -> bool:
        """Whether an attempt that may match does."""
        return (
            (not self.outcome or self.outcome == facts.outcome)
            and (not self.node or self.node == facts.node)
            and (not self.plugin or self.plugin in facts.plugins)
        )


def part_query(parameters: Parameters, *, limit: int, most: int) -> slice:
    """Return the part of a list that is asked for; raises BadQueryError."""
    values = checked(parameters, ("limit", "offset"))
    begin = number(values, "offset", 0, least=0, most=10_000_000)
    return slice(begin, begin + number(values, "limit", limit, least=1, most=most))


def refusing(handler: Handler) -> Handler:
    """Return a handler that answers 400 to what cannot be asked for."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadQueryError as error:
            return web.json_response({"error": str(error)}, status=400)

    return answer


_NAMES = ("id", "namespace", "pod", "node", "plugin", "profile")


def decision_query(parameters: Parameters) -> DecisionQuery:
    """Return what a list is asked for.

    Raises:
        BadQueryError: The caller has to change something.
    """
    values = checked(parameters, (*_NAMES, "outcome", "since", "until", "limit", "continue"))
    outcome = values.get("outcome", "")
    if outcome and outcome not in OUTCOMES:
        raise BadQueryError(f"outcome is one of {', '.join(OUTCOMES)}, not {outcome[:100]}")
    now = time.time()
    since, until = (_time(values, name, now) for name in ("since", "until"))
    query = DecisionQuery(
        **{name: values.get(name, "") for name in _NAMES},
        outcome=outcome,
        since=-math.inf if since is None else since,
        until=math.inf if until is None else until,
        limit=number(values, "limit", DEFAULT_LIMIT, least=1, most=MOST),
        after=values.get("continue", ""),
    )
    if query.since > query.until:
        raise BadQueryError("since is after until, so no decision can match")
    return query


def checked(parameters: Parameters, known: Collection[str]) -> Mapping[str, str]:
    """Return parameters by name, those with an empty value left out.

    Raises:
        BadQueryError: One is not known, or is there twice.
    """
    values: dict[str, str] = {}
    for name, value in parameters:
        if name not in known:
            raise BadQueryError(
                f"there is no parameter {name[:100]}; there are {', '.join(sorted(known))}"
            )
        if name in values:
            raise BadQueryError(f"{name} is given twice")
        values[name] = value
    return {name: value for name, value in values.items() if value}


def number(values: Mapping[str, str], name: str, default: int, *, least: int, most: int) -> int:
    """Return a whole number; raises BadQueryError."""
    text = values.get(name)
    if text is None:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    if not is_number or not least <= int(text) <= most:
        raise BadQueryError(f"{name} is a whole number from {least} to {most}, not {text[:100]}")
    return int(text)


def _time(values: Mapping[str, str], name: str, now: float) -> float | None:
    """Return a time in seconds since 1970; None if it is not given."""
    text = values.get(name)
    if text is None:
        return None
    try:
        return now - parse_duration(text)
    except ValueError:
        pass
    try:
        # In a query, "+" stands for a space.
        found = msgspec.convert(text.replace(" ", "+"), datetime)
        if found.tzinfo is not None:
            seconds: float = found.timestamp()
            return seconds
    except (msgspec.ValidationError, OverflowError, ValueError):
        pass
    raise BadQueryError(
        f"{name} is a time such as 2026-11-23T01:30:00Z, or how long ago, such as 15m, "
        f"not {text[:100]}"
    )
