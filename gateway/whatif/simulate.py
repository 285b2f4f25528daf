"""Answers what-if questions on the admin port; nothing that the gateway keeps changes by them.

The services are asked by hand: in the lane that takes no time from the sessions of gateways.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc.aio
import msgspec
import numpy as np
from aiohttp import web
from msgspec.structs import replace
from multidict import MultiMapping

from gateway.cluster.cluster import Cluster
from gateway.cycle import CallFailedError
from gateway.cycle.decision import UNKNOWN_NODE
from gateway.edge import answers
from gateway.edge.bodies import TOO_LARGE, BadRequestError, Bodies
from gateway.edge.edge import NOT_UNDERSTOOD
from gateway.policy.policy import PolicyHolder
from gateway.replicas.set import ReplicaSet
from gateway.scheduling.bind_check import STALE
from gateway.settings import GatewaySettings
from gateway.whatif.answer import Answer, compose, side
from gateway.whatif.question import (
    Change,
    Question,
    extender_question,
    plugins_of,
    read_change,
    read_question,
    reweighed,
)
from moorage.execution.overruns import owner_of
from moorage.models import encode
from moorage.v1 import filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb
from moorage.v1.filter_pb2_grpc import FilterServiceStub
from moorage.v1.scorer_pb2_grpc import ScorerServiceStub
from moorage_host.http.callers import ALL_NAMESPACES, require_read
from moorage_host.policy import KINDS
from moorage_host.rpc.stream import StreamLostError
from moorage_host.slots import Slots

TRIES: Final = 6
"""How often a replica is asked: one is lost, is busy, or a node is so new that it lacks it."""

REFUSAL_SECONDS: Final = 1.0
"""How long a question that is refused waits for that."""

BYTES_PER_SECOND: Final = 4 << 20
"""How fast bodies are read: what a large one costs is time that live pods wait for."""

MOST_LOST: Final = 2
"""Tries that may end with a lost replica: the question may be why."""

PAUSE: Final = 0.2
"""Seconds between two tries."""

SERVICE_SECONDS: Final = 10.0
"""How long a service may take for a question."""

BODY_LIMIT: Final = 4 << 20
"""The largest body of a question, in bytes."""

_WRONG: Final = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
_PASSING: Final = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
)


class Simulator:
    """Answers questions; asks replicas that take part in cycles, as people call them."""

    def __init__(
        self,
        cluster: Cluster,
        policy: PolicyHolder,
        filters: ReplicaSet,
        scorers: ReplicaSet,
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._filters = filters
        self._scorers = scorers
        self._turns = itertools.count()

    async def filter(self, body: bytes) -> bytes:
        """Return which nodes the pod of ExtenderArgs may use, as the edge answers it, not claimed.

        Raises:
            BadRequestError: A question is wrong, or a service refuses it.
            CallFailedError: A service does not answer, or a plugin fails.
        """
        question, nodes = await extender_question(self._cluster.state, body)
        self._require_ready()
        if question.profile not in self._policy.dependencies.filters:
            return answers.filter_answer(nodes)
        failed: dict[str, str] = {}
        unresolvable = dict.fromkeys(question.unknown, UNKNOWN_NODE)
        if question.names:
            for each in (await self._verdicts(question)).rejected:
                target = unresolvable if each.reason.unresolvable else failed
                target[each.node] = each.reason.text
        kept = np.array([name not in failed and name not in unresolvable for name in nodes.names])
        feasible = nodes.restricted(kept) if len(kept) else nodes
        return answers.filter_answer(feasible, failed, unresolvable)

    async def answer(self, body: bytes) -> bytes:
        """Return the verdicts by plugin and the ranking, in words too; raises the same."""
        self._require_ready()
        question = await read_question(self._cluster.state, self._policy, body)
        found = await self._answer(question)
        return await asyncio.to_thread(msgspec.json.encode, found)

    async def compare(self, pod: Mapping[str, Any], query: MultiMapping[str]) -> bytes:
        """Return the answers about a pod now and with a change; see `read_change`, raises the same.

        It is looked at as if it had no node; if it has another scheduler, by the first profile.
        """
        self._require_ready()
        state, resolved = self._cluster.state, self._policy.resolved
        assert resolved is not None  # noqa: S101 - the gateway is ready
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        known = resolved.profile_names
        profile = "" if spec.get("schedulerName") in known else next(iter(known), "")
        body = msgspec.json.encode({"pod": {**pod, "spec": spec}, "profile": profile})
        question = await read_question(state, self._policy, body)
        change = read_change(query, resolved, question.profile, state)
        more = replace(
            question,
            names=[*question.names, *(node.name for node in change.nodes)],
            given=change.nodes,
        )
        before = await self._answer(question)
        after = await self._answer(more, change) if query else before
        plugins = {kind: plugins_of(resolved, kind, question.profile) for kind in KINDS[:2]}
        return await asyncio.to_thread(
            lambda: msgspec.json.encode(
                {
                    "profile": question.profile,
                    "before": side(before, named=not query),
                    "after": side(after, named=not query),
                    "plugins": plugins,
                }
            )
        )

    async def _answer(self, question: Question, change: Change | None = None) -> Answer:
        dependencies, profile = self._policy.dependencies, question.profile
        filtered, scored, no_scores = None, None, ""
        feasible: Sequence[str] = question.names
        if profile in dependencies.filters and question.names:
            filtered = await self._verdicts(question)
            if change is not None and change.off:
                filtered = await self._without(question, change, filtered)
            feasible = list(filtered.feasible)
        if profile in dependencies.scores and feasible:
            try:
                scored = await self._scores(question, feasible)
                reweighed(scored, change.weights if change is not None else {})
            except CallFailedError as error:  # kube-scheduler goes on without scores
                no_scores = str(error)
        # With thousands of nodes this takes a while, in which live pods must not wait.
        return await asyncio.to_thread(
            compose,
            question,
            filtered,
            scored,
            policy_revision=self._policy.revision,
            scale=self._policy.score_scale,
            no_scores=no_scores,
        )

    async def _without(
        self, question: Question, change: Change, filtered: filter_pb2.FilterResponse
    ) -> filter_pb2.FilterResponse:
        """Return verdicts without some plugins: about what these rejected, others decide."""
        kept = [each for each in filtered.rejected if each.reason.plugin not in change.off]
        left = [each.node for each in filtered.rejected if each.reason.plugin in change.off]
        for plugin in change.others:
            if not left:
                break
            found = await self._verdicts(replace(question, names=left), plugin)
            kept += found.rejected
            left = list(found.feasible)
        passing = {*filtered.feasible, *left}
        return filter_pb2.FilterResponse(
            feasible=[name for name in question.names if name in passing],
            rejected=kept,
            generation=filtered.generation,
            plugins=[each for each in filtered.plugins if each.plugin not in change.off],
            claimants=[each for each in filtered.claimants if each not in change.off],
        )

    def _require_ready(self) -> None:
        """Check that the gateway knows enough to answer.

        Raises:
            CallFailedError: It does not; the words are those of the edge.
        """
        if not self._cluster.synced():
            raise CallFailedError("Moorage has not read the cluster yet")
        if self._cluster.is_stale():
            raise CallFailedError(STALE)
        if self._policy.resolved is None:
            raise CallFailedError("Moorage has no policy yet; see /readyz of its gateway")

    async def _verdicts(self, question: Question, plugin: str = "") -> filter_pb2.FilterResponse:
        """Return the verdicts of one plugin, or of all."""
        request = filter_pb2.FilterRequest(
            node_names=question.names, plugin=plugin, **_common(question)
        )
        response: filter_pb2.FilterResponse = await self._ask(
            self._filters,
            question,
            lambda channel: FilterServiceStub(channel).Filter(request, timeout=SERVICE_SECONDS),
        )
        return response

    async def _scores(self, question: Question, names: Sequence[str]) -> scorer_pb2.ScoreResponse:
        """Return the scores of some of the question's nodes, the best first."""
        request = scorer_pb2.ScoreRequest(node_names=names, **_common(question))
        response: scorer_pb2.ScoreResponse = await self._ask(
            self._scorers,
            question,
            lambda channel: ScorerServiceStub(channel).Score(request, timeout=SERVICE_SECONDS),
        )
        return response

    async def _ask(
        self, pool: ReplicaSet, question: Question, call: Callable[[grpc.aio.Channel], Any]
    ) -> Any:
        service, lost = f"{pool.kind.name} service", 0
        for left in reversed(range(TRIES)):
            members = pool.all
            if not members:
                raise CallFailedError(f"{service} is not available: {pool.problem}")
            member = members[next(self._turns) % len(members)]
            if pool.crash_suspects.pods:
                version = member.session.version
                refused = pool.crash_suspects.refusals(owner_of(question.pod), version)
                for plugin, why in refused.items():
                    named = f"plugin {plugin}: " if plugin else ""
                    raise CallFailedError(f"{service}: {named}{why}")
            try:
                async with asyncio.timeout(SERVICE_SECONDS):
                    await member.session.caught_up()  # the answer is about the state as it is now
                return await call(member.session.channel)
            except (StreamLostError, TimeoutError) as error:
                if not left:
                    raise CallFailedError(f"{service}: {error or 'it does not keep up'}") from error
            except grpc.aio.AioRpcError as error:
                lost += error.code() is grpc.StatusCode.UNAVAILABLE
                if not left or lost == MOST_LOST or error.code() not in _PASSING:
                    kind = BadRequestError if error.code() in _WRONG else CallFailedError
                    raise kind(f"{service}: {error.details()}") from error
            await asyncio.sleep(PAUSE)
        raise AssertionError  # the last try returns or raises


def _common(question: Question) -> dict[str, Any]:
    return {
        "profile": question.profile,
        "pod": pb.Pod(json=question.pod_json),
        "nodes": [pb.Node(json=encode(each)) for each in question.given],
    }


PodOf = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""Returns a pod by namespace and name: empty if there is none, None if the API server is silent."""

Respond = Callable[[bytes], Awaitable[bytes]]


class BusyError(CallFailedError):
    """Too many questions wait already."""


class Questions:
    """Takes a few questions at a time; a few more wait, and the rest is refused."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._bodies = Bodies(BODY_LIMIT * settings.simulate_calls)
        self._slots = Slots(settings.simulate_calls, settings.simulate_waiting)
        self._next = 0.0

    async def answer(self, request: web.Request, respond: Respond) -> bytes:
        """Respond to the body when its turn has come; raises BadRequestError and BusyError."""
        async with self.turn():
            now, length = time.monotonic(), request.content_length
            begin = max(now, self._next)
            # What is longer than allowed is refused unread.
            length = BODY_LIMIT if length is None else min(length, BODY_LIMIT)
            self._next = begin + length / BYTES_PER_SECOND
            await asyncio.sleep(begin - now)
            body = await self._bodies.read(request, BODY_LIMIT)
            try:
                return await respond(body)
            finally:
                self._bodies.held -= len(body)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a question's turn, which lasts until the block is left; raises BusyError."""
        if self._slots.is_full:
            # Its body is not read meanwhile, so that a storm of large ones costs live pods less.
            await self._slots.slow_down(REFUSAL_SECONDS)
            raise BusyError(
                f"{self._slots.running} simulations run and {self._slots.waiting} wait: "
                "ask again later"
            )
        async with self._slots.slot():
            yield


def simulate_routes(
    settings: GatewaySettings,
    cluster: Cluster,
    policy: PolicyHolder,
    filters: ReplicaSet,
    scorers: ReplicaSet,
    pod_of: PodOf,
) -> Sequence[web.RouteDef]:
    """Return the routes; a caller with a bearer token must be allowed to get all pods."""
    questions = Questions(settings)
    simulator = Simulator(cluster, policy, filters, scorers)

    async def simulate(request: web.Request) -> web.Response:
        await require_read(request, ALL_NAMESPACES)
        return await _answered(questions.answer(request, simulator.answer))

    async def compare(request: web.Request) -> web.Response:
        await require_read(request, ALL_NAMESPACES)
        namespace, name = request.match_info["namespace"], request.match_info["pod"]

        async def compared() -> bytes:
            async with questions.turn():
                pod = await pod_of(namespace, name)
                if pod is None:
                    raise CallFailedError("the API server does not show the pod")
                if not pod:
                    raise BadRequestError(f"there is no pod {namespace}/{name}")
                return await simulator.compare(pod, request.query)

        return await _answered(compared())

    async def simulate_filter(request: web.Request) -> web.Response:
        await require_read(request, ALL_NAMESPACES)
        try:
            return _json(await questions.answer(request, simulator.filter))
        except BadRequestError as error:
            return _json(answers.filter_error(f"{NOT_UNDERSTOOD}{error}"))
        except CallFailedError as error:
            return _json(answers.filter_error(str(error)))

    return (
        web.post("/simulate", simulate),
        web.post("/simulate/filter", simulate_filter),
        web.get("/simulate/{namespace}/{pod}", compare),
    )


async def _answered(answer: Awaitable[bytes]) -> web.Response:
    try:
        return _json(await answer)
    except BadRequestError as error:
        return _error(str(error), 413 if error.reason == TOO_LARGE else 400)
    except BusyError as error:
        return _error(str(error), 429)
    except CallFailedError as error:
        return _error(str(error), 503)


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _error(text: str, status: int) -> web.Response:
    return _json(msgspec.json.encode({"error": text}), status)
