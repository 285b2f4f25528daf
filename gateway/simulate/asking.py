"""Asks the services by hand: in the lane that takes no time from the sessions of gateways."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc.aio

from gateway.calls import CallFailedError
from gateway.edge.json.errors import BadRequestError
from gateway.replicas.pool import ReplicaPool
from gateway.simulate.question import Question
from moorage.models import encode
from moorage.v1 import filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb
from moorage.v1.filter_pb2_grpc import FilterServiceStub
from moorage.v1.scorer_pb2_grpc import ScorerServiceStub

TRIES: Final = 6
"""How often a replica is asked: one is lost, is busy, or a node is so new that it lacks it."""

PAUSE: Final = 0.2
"""Seconds between two tries."""

_WRONG: Final = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
_PASSING: Final = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
)

Method = Callable[[grpc.aio.Channel], Any]


class Services:
    """The filter and the scorer service, as people call them."""

    def __init__(self, filters: ReplicaPool, scorers: ReplicaPool, seconds: float) -> None:
        """Ask replicas that take part in cycles; each call may take so many *seconds*."""
        self._filters = filters
        self._scorers = scorers
        self._seconds = seconds
        self._turns = itertools.count()

    async def filter(self, question: Question) -> filter_pb2.FilterResponse:
        """Return the verdicts on the question's nodes.

        Raises:
            BadRequestError: The pod or a node is wrong, or there are too many nodes.
            CallFailedError: The service does not answer, or a plugin fails.
        """
        request = filter_pb2.FilterRequest(
            profile=question.profile,
            pod=pb.Pod(json=question.pod_json),
            node_names=question.names,
            nodes=[pb.Node(json=encode(each)) for each in question.given],
        )
        call = lambda c: FilterServiceStub(c).Filter  # noqa: E731
        response: filter_pb2.FilterResponse = await self._ask(self._filters, call, request)
        return response

    async def score(self, question: Question, names: Sequence[str]) -> scorer_pb2.ScoreResponse:
        """Return the scores of some of the question's nodes, the best first; raises the same."""
        request = scorer_pb2.ScoreRequest(
            profile=question.profile,
            pod=pb.Pod(json=question.pod_json),
            node_names=names,
            nodes=[pb.Node(json=encode(each)) for each in question.given],
        )
        call = lambda c: ScorerServiceStub(c).Score  # noqa: E731
        response: scorer_pb2.ScoreResponse = await self._ask(self._scorers, call, request)
        return response

    async def _ask(self, pool: ReplicaPool, method: Method, request: Any) -> Any:
        service = f"{pool.kind.name} service"
        for left in reversed(range(TRIES)):
            members = list(pool.members.all)
            if not members:
                raise CallFailedError(f"{service} is not available: {pool.problem}")
            member = members[next(self._turns) % len(members)]
            try:
                return await method(member.session.channel)(request, timeout=self._seconds)
            except grpc.aio.AioRpcError as error:
                if not left or error.code() not in _PASSING:
                    kind = BadRequestError if error.code() in _WRONG else CallFailedError
                    raise kind(f"{service}: {error.details()}") from error
            await asyncio.sleep(PAUSE)
        raise AssertionError  # the last try returns or raises
