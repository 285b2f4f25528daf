"""Reads what routes on the admin port are asked for, and makes the pages that answer.

Pages are of decisions, newest first, and of the pods that have no node, as the watch shows them.
Nothing is asked of the API server, so the lists are at hand however many pods wait.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, TypeVar, get_args

import msgspec
from aiohttp import web
from msgspec import Meta

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.cycle.decision import Decision, DecisionItem, Outcome
from gateway.decisions.capacity import is_placeholder
from gateway.decisions.log import Attempt, DecisionLog, Facts, facts, runner_up
from gateway.decisions.nodes import KeptArrays
from gateway.decisions.sentences import reason
from moorage.errors import MoorageError
from moorage.models import Pod
from moorage.units.durations import parse_duration

DEFAULT_LIMIT = 100
MOST = 1000
"""Decisions in an answer."""

MOST_NODES = 5_000
"""Nodes in an answer, which is encoded between cycles."""

TIMES = "expected a time such as 2026-11-23T01:30:00Z, or how long ago, such as 15m"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MayRead = Callable[[str], Awaitable[bool]]
"""Returns whether the caller may read the pods of a namespace."""

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


# ---- pages

SLICE = 100
"""Attempts that are looked at before cycles get their turn: the first look takes 20 us for each."""

PlaceOf = Callable[[str], str]
"""Returns the node that the pod with a uid is bound to as the cluster shows it, "" for none."""


class Listing:
    """Lists the decisions of a log."""

    def __init__(self, log: DecisionLog, arrays: KeptArrays, place_of: PlaceOf) -> None:
        """Look up in *place_of* where pods are that Moorage does not bind."""
        self._log = log
        self._arrays = arrays
        self._place_of = place_of

    async def page(self, query: DecisionQuery, may_read: MayRead) -> tuple[list[DecisionItem], str]:
        """Return decisions, and where the list goes on, "" at its end.

        Raises:
            BadQueryError: The list cannot go on where the query says.
        """
        items: list[DecisionItem] = []
        readable: dict[str, bool] = {}
        async for attempt, found in self._matching(query):
            if attempt.namespace not in readable:
                readable[attempt.namespace] = await may_read(attempt.namespace)
            if not readable[attempt.namespace]:
                continue
            if len(items) == query.limit:
                return items, items[-1].id
            items.append(self._item(attempt.decision, found, self._place(attempt)))
        return items, ""

    def item(self, decision: Decision) -> DecisionItem:
        """Return a decision as lists show it."""
        place = self._place_of(decision.uid)
        return self._item(decision, facts(decision).at(place), place)

    async def _matching(self, query: DecisionQuery) -> AsyncIterator[tuple[Attempt, Facts]]:
        for count, attempt in enumerate(self._candidates(query), start=1):
            if count % SLICE == 0:
                await asyncio.sleep(0)
            if query.may_match(attempt):
                found = attempt.facts
                if found.outcome == "binding":
                    found = found.at(self._place(attempt))
                if query.matches(found):
                    yield attempt, found

    def _candidates(self, query: DecisionQuery) -> list[Attempt]:
        if query.namespace and query.pod:
            attempts = list(self._log.of_pod(query.namespace, query.pod))
        else:
            attempts = self._log.all()
        if query.id:
            wanted = self._log.number_of(query.id)
            attempts = [attempt for attempt in attempts if attempt.number == wanted]
        if not query.after:
            return attempts
        number = self._log.number_of(query.after)
        if number is None:
            raise BadQueryError(
                "continue is not from this gateway, or it has restarted since: begin again without"
            )
        return [attempt for attempt in attempts if attempt.number < number]

    def _place(self, attempt: Attempt) -> str:
        """Return where the pod is, if it can be there by this attempt: only by the latest."""
        return self._place_of(attempt.uid) if self._log.is_latest(attempt) else ""

    def _item(self, decision: Decision, found: Facts, place: str) -> DecisionItem:
        phase = decision.filter or decision.preempt
        return DecisionItem(
            id=decision.id,
            namespace=decision.namespace,
            pod=decision.pod,
            uid=decision.uid,
            time=decision.time,
            profile=decision.profile,
            outcome=found.outcome,
            node=found.node,
            runner_up=runner_up(decision, found.node),
            reason=reason(decision, place, self._arrays.totals_of(decision.id)),
            plugins=found.plugins,
            nodes=phase.nodes if phase else 0,
            feasible=phase.feasible if phase else 0,
            cluster_nodes=decision.cluster_nodes,
            seconds=decision.seconds,
            attempt=decision.attempt,
            previous=decision.previous,
        )


COMPARED_AT_ONCE = 2000
"""Names that are compared before cycles get their turn; each takes about 1 us."""


async def oldest_first(
    state: ClusterState, waiting: Mapping[str, Waiting], namespace: str
) -> Sequence[Pod]:
    """Return the pods without a node, of one namespace or, for "", of all."""
    known = filter(None, map(state.pods.get, waiting))
    pods = [each for each in known if namespace in ("", each.namespace)]
    pods = [each for each in pods if not is_placeholder(each)]
    # Texts are compared fast; the rest goes on beside cycles.
    return await asyncio.to_thread(
        sorted, pods, key=lambda each: f"{each.metadata.creation_timestamp} {each.name}"
    )


def matches(words: Sequence[str], pod: Pod, *more: str) -> bool:
    """Whether a pod's name, or something *more* about it, has all of the lower-case *words*."""
    text = " ".join((f"{pod.namespace}/{pod.name}", *more)).lower()
    return all(word in text for word in words)


async def with_a_node(state: ClusterState, words: Sequence[str]) -> AsyncIterator[Pod]:
    """Yield pods on nodes whose names match, not all at once: cycles go on."""
    for count, uid in enumerate(state.known_pods(), start=1):
        pod = state.pods.get(uid)
        if pod is not None and pod.spec.node_name and matches(words, pod):
            yield pod
        if count % COMPARED_AT_ONCE == 0:
            await asyncio.sleep(0)
