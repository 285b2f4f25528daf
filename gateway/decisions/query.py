"""Reads what routes on the admin port are asked for; refuses what they do not know."""

import math
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, TypeVar, get_args

import msgspec
from aiohttp import web
from msgspec import Meta

from gateway.cycle.decision import Outcome
from gateway.decisions.log import Attempt
from gateway.decisions.sentences import Facts
from moorage.errors import MoorageError
from moorage.units.durations import parse_duration

DEFAULT_LIMIT = 100
MOST = 1000
"""Decisions in an answer."""

MOST_NODES = 100_000
"""Nodes in an answer."""

TIMES = "expected a time such as 2026-11-23T01:30:00Z, or how long ago, such as 15m"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

Limit = Annotated[int, Meta(ge=1, le=MOST)]

ParametersT = TypeVar("ParametersT", bound="Parameters")


class BadQueryError(MoorageError):
    """A parameter is not known, or its value cannot be used."""


class Moment(float):
    """A time in seconds since 1970; written as a time, or as how long ago."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What a route may be asked for; "" and what is not given are the default."""

    @classmethod
    def of(cls: type[ParametersT], request: web.Request) -> ParametersT:
        """Read the parameters of a request.

        Raises:
            BadQueryError: One is not known, or there twice, or its value cannot be used.
        """
        values: dict[str, str] = {}
        for name, value in request.query.items():
            if name not in cls.__struct_encode_fields__:
                known = ", ".join(sorted(cls.__struct_encode_fields__))
                raise BadQueryError(f"there is no parameter {name[:100]}; there are {known}")
            if name in values:
                raise BadQueryError(f"{name} is given twice")
            values[name] = value
        given = {name: value for name, value in values.items() if value}
        try:
            return msgspec.convert(given, cls, strict=False, dec_hook=_moment)
        except msgspec.ValidationError as error:
            what, _, name = str(error).rstrip("`").partition(" - at `$.")
            what = what.replace("Expected", "expected").partition(", got ")[0]
            # What a caller wrote may look like the place of a mistake.
            text = f"{name}: {what}, not {given[name][:100]}" if name in given else what
            raise BadQueryError(text) from error


class TablePart(Parameters, frozen=True):
    """Which part of a list is asked for."""

    limit: Annotated[int, Meta(ge=1, le=MOST_NODES)] = DEFAULT_LIMIT
    offset: Annotated[int, Meta(ge=0, le=10_000_000)] = 0

    @property
    def slice(self) -> slice:
        """The part of the list."""
        return slice(self.offset, self.offset + self.limit)


class DecisionQuery(Parameters, frozen=True, kw_only=True, rename={"after": "continue"}):
    """Which decisions are wanted; "" stands for any.

    Attributes:
        after: The id of the decision that the list goes on after.
    """

    id: str = ""
    namespace: str = ""
    pod: str = ""
    node: str = ""
    plugin: str = ""
    outcome: str = ""
    profile: str = ""
    since: Moment = Moment(-math.inf)
    until: Moment = Moment(math.inf)
    limit: Limit = DEFAULT_LIMIT
    after: str = ""

    def __post_init__(self) -> None:
        if self.outcome and self.outcome not in get_args(Outcome):
            known = ", ".join(get_args(Outcome))
            raise ValueError(f"outcome is one of {known}, not {self.outcome[:100]}")
        if self.since > self.until:
            raise ValueError("since is after until, so no decision can match")

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


def refusing(handler: Handler) -> Handler:
    """Return a handler that answers 400 to what cannot be asked for."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadQueryError as error:
            return web.json_response({"error": str(error)}, status=400)

    return answer


def _moment(kind: type, text: str) -> object:
    """Read a time; raises ValueError."""
    try:
        return kind(time.time() - parse_duration(text))
    except ValueError:
        pass
    try:
        # In a query, "+" stands for a space.
        found = msgspec.convert(text.replace(" ", "+"), datetime)
        if found.tzinfo is not None:
            return kind(found.timestamp())
    except (msgspec.ValidationError, OverflowError, ValueError):
        pass
    raise ValueError(TIMES)
