"""Serves `POST /simulate` and `POST /simulate/filter` on the admin port, within limits."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
from aiohttp import web

from gateway.calls import CallFailedError
from gateway.cluster.cluster import Cluster
from gateway.edge.exchange import NOT_UNDERSTOOD
from gateway.edge.in_flight import BytesInFlight
from gateway.edge.json import answers
from gateway.edge.json.errors import TOO_LARGE, BadRequestError
from gateway.edge.messages import read_body
from gateway.policy.policy import PolicyHolder
from gateway.replicas.pool import ReplicaPool
from gateway.settings import GatewaySettings
from gateway.simulate.asking import Services
from gateway.simulate.reading import Reader
from gateway.simulate.simulator import Simulator
from moorage_host.http.reading import ALL_NAMESPACES, require_read
from moorage_host.turns import Turns

Respond = Callable[[bytes], Awaitable[bytes]]


class BusyError(CallFailedError):
    """Too many questions wait already."""


class Questions:
    """Takes a few questions at a time; a few more wait, and the rest is refused."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._limit = settings.simulate_body_limit
        self._in_flight = BytesInFlight(self._limit * settings.simulate_calls)
        self._turns = Turns(settings.simulate_calls, settings.simulate_waiting)

    async def answer(self, request: web.Request, respond: Respond) -> bytes:
        """Read the body when its turn has come, and respond to it.

        Raises:
            BadRequestError: It is too large, or badly framed.
            BusyError: Too many wait.
        """
        if self._turns.is_full:
            raise BusyError(
                f"{self._turns.running} simulations run and {self._turns.waiting} wait: ask again "
                "later, or raise --simulate-calls or --simulate-waiting"
            )
        async with self._turns.turn():
            with self._in_flight.body() as counted:
                return await respond(await read_body(request, self._limit, counted))


class Rooms(Protocol):
    """The parts of the gateway that answers come from."""

    @property
    def cluster(self) -> Cluster: ...  # noqa: D102
    @property
    def policy(self) -> PolicyHolder: ...  # noqa: D102
    @property
    def filters(self) -> ReplicaPool: ...  # noqa: D102
    @property
    def scorers(self) -> ReplicaPool: ...  # noqa: D102


def simulate_routes(settings: GatewaySettings, rooms: Rooms) -> Sequence[web.RouteDef]:
    """Return the routes; a caller with a bearer token must be allowed to get all pods."""
    cluster, policy = rooms.cluster, rooms.policy
    questions, reader = Questions(settings), Reader(cluster.state, policy, settings)
    services = Services(rooms.filters, rooms.scorers, settings.simulate_timeout)
    simulator = Simulator(cluster, policy, services)

    async def respond(body: bytes) -> bytes:
        simulator.require_ready()
        return await simulator.answer(await reader.question(body))

    async def respond_as_extender(body: bytes) -> bytes:
        question, nodes = await reader.extender_question(body)
        return answers.filter_answer(await simulator.filter(question, nodes))

    async def simulate(request: web.Request) -> web.Response:
        await require_read(request, ALL_NAMESPACES)
        try:
            return _json(await questions.answer(request, respond))
        except BadRequestError as error:
            return _error(str(error), 413 if error.reason == TOO_LARGE else 400)
        except BusyError as error:
            return _error(str(error), 429)
        except CallFailedError as error:
            return _error(str(error), 503)

    async def simulate_filter(request: web.Request) -> web.Response:
        await require_read(request, ALL_NAMESPACES)
        try:
            return _json(await questions.answer(request, respond_as_extender))
        except BadRequestError as error:
            return _json(answers.filter_error(f"{NOT_UNDERSTOOD}{error}"))
        except CallFailedError as error:
            return _json(answers.filter_error(str(error)))

    return (web.post("/simulate", simulate), web.post("/simulate/filter", simulate_filter))


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _error(text: str, status: int) -> web.Response:
    return _json(msgspec.json.encode({"error": text}), status)
