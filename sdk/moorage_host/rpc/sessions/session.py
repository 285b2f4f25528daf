"""Answers the requests of one session, in the order in which they come."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moorage.v1 import filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb
from moorage_host.plugins import Replica
from moorage_host.plugins.replica import Engine
from moorage_host.rpc.errors import report
from moorage_host.rpc.sessions.service import CycleOutcome, CycleService
from moorage_host.rpc.sessions.state import MISTAKES, refusal_of

Run = TypeVar("Run")

SessionRequest = filter_pb2.FilterServiceSessionRequest | scorer_pb2.ScorerServiceSessionRequest


@dataclass(frozen=True, slots=True)
class Wire(Generic[Run]):
    """How a service's answers look on the wire.

    Attributes:
        response: Makes an answer of the session, which has `hello`, `acknowledgement` or `result`.
        engine: Returns what runs the cycle of a request.
        encode: Of a request and its outcome, fills in the result.
    """

    response: Callable[..., Any]
    engine: Callable[[Any], Engine[Run]]
    encode: Callable[[Any, CycleOutcome[Run], Any], None]


async def run_session(
    service: CycleService[Run], requests: AsyncIterator[SessionRequest], wire: Wire[Run]
) -> AsyncIterator[Any]:
    """Answer the requests of one session, in order.

    Raises:
        CallError: A state cannot be applied (INVALID_ARGUMENT), or too many sessions are open
            (RESOURCE_EXHAUSTED); the caller starts again.
    """
    async with service.session() as replica:
        yield wire.response(hello=service.hello())
        async for request in requests:
            if request.HasField("state"):
                policy_error = await _applied(service, replica, request.state)
                if policy_error or not request.HasField("cycle"):
                    yield wire.response(acknowledgement=_acknowledgement(replica, policy_error))
            if request.HasField("cycle"):
                yield await _answer(service, replica, request, wire)


async def _applied(service: CycleService[Run], replica: Replica, state: pb.State) -> str:
    try:
        return await service.apply(replica, state)
    except MISTAKES as error:
        raise refusal_of(error) from error


def _acknowledgement(replica: Replica, policy_error: str) -> pb.Acknowledgement:
    return pb.Acknowledgement(
        generation=replica.generation,
        policy_revision=replica.policy.revision,
        policy_error=policy_error,
    )


async def _answer(
    service: CycleService[Run], replica: Replica, request: SessionRequest, wire: Wire[Run]
) -> Any:
    answer = wire.response()
    result = answer.result  # filled in where it is, because messages copy what they are made of
    try:
        outcome = await service.cycle(replica, request.cycle, wire.engine(request))
        wire.encode(request, outcome, result)
    except Exception as error:  # noqa: BLE001 - every cycle gets an answer
        result.Clear()
        code, result.status.message = report(error)
        result.status.code = code.value[0]
    result.cycle = request.cycle.id
    return answer
