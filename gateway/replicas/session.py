"""One session with one replica: states and cycles down, acknowledgements and results up."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal

import grpc
import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cycle import Cycle, NodeSet
from gateway.cycle.nodes import NodeRows, Positions
from gateway.policy.policy import digest_of
from gateway.replicas.feed import PART_BYTES, Kinds, StateFeed, in_parts
from gateway.replicas.kinds import ReportRetry, ServiceKind, follow
from gateway.replicas.metrics import SessionMetrics
from moorage.execution import mark
from moorage.models import Pod, encode
from moorage.v1 import types_pb2 as pb
from moorage.version import __version__, works_with
from moorage_host.rpc.channel import connect
from moorage_host.rpc.convert import kind_to_proto
from moorage_host.rpc.stream import MessageStream, StreamLostError
from moorage_host.tls.identities import service_identity
from moorage_host.tls.security import Security

WaitUntilIdle = Callable[[], Awaitable[None]]
"""Waits until no cycle runs or waits, but not long."""

REPLICA_SHARE = 0.95
"""The part of the remaining time that a replica gets; the rest is for the answer's way back."""

PARTS_AHEAD = 16
"""Parts of a full snapshot that a replica gets before it has acknowledged the first of them."""


Stage = Literal["whole", "shard", "normalize"]
"""What is asked: see `Part`."""


class SessionRefusedError(Exception):
    """The replica cannot use the policy."""


class WrongReplicaError(StreamLostError):
    """What answers is another service, or of a version that this one does not work with."""


class Part(msgspec.Struct, kw_only=True, eq=False):
    """What one replica is asked about a cycle in one go.

    Rows refer to the state at the time of sending, which may differ when it is sent again.

    Attributes:
        nodes: The nodes of the phase.
        positions: Those of them that are asked about; None for all.
        size: How many these are.
        stage: A whole phase, the raw scores of a shard, or the normalisation of gathered scores.
        version: Only replicas with this version of plugins may answer; empty if any may.
        raw: The gathered scores by plugin, by position among all nodes.
        profile: Another profile than that of the pod: a shadow, whose work is not traced.
        rows: The rows of the nodes, if they must be those of an earlier moment.
        refused: Plugins that are not called for the pod, and why not, because replicas crashed.
    """

    nodes: NodeSet
    size: int
    positions: Positions | None = None
    stage: Stage = "whole"
    version: str = ""
    raw: Mapping[str, npt.NDArray[np.float64]] = {}
    profile: str = ""
    rows: NodeRows | None = None
    refused: Mapping[str, str] = {}


class Session:
    """A stream to a replica, which acknowledges in order the states that come without a cycle.

    Attributes:
        replica: The replica's name for itself.
        plugins: What the replica can run.
        moorage_version: The version of Moorage that it runs; "" from versions before 0.2.
        version: A digest of its plugins' versions; answers of different ones are never joined.
        sent_generation: Generation of the last state sent.
        state_generation: That of the last one sent without a cycle.
        problems: What fails in the background of its plugins, by their names.
        channel: The connection, for calls beside the stream.
    """

    def __init__(
        self,
        kind: ServiceKind,
        feed: StateFeed,
        metrics: SessionMetrics,
        security: Security,
        target: str,
    ) -> None:
        """Connect to the replica at *target*, which gets the state from *feed*."""
        self.replica = ""
        self.plugins: list[pb.Plugin] = []
        self.moorage_version = ""
        self.version = ""
        self.state_generation = 0
        self.problems: Mapping[str, str] = {}
        self._kind = kind
        self._feed = feed
        self._metrics = metrics
        self.channel = connect(target, security=security, identity=service_identity(kind.name))
        self._stream: MessageStream[Any] = MessageStream(kind.open(self.channel), self._receive)
        self._greeting, self._hello = self._stream.expect(math.inf)
        self._unacknowledged: deque[int] = deque()
        self._newest: asyncio.Future[Any] | None = None  # the acknowledgement of the last state
        self.sent_generation = 0
        self._kinds: Kinds = frozenset()

    async def greet(self, timeout: float) -> pb.FormerProcess:
        """Wait for the replica's greeting; return what it says of the process before it.

        Raises:
            StreamLostError: The replica does not greet in time.
            WrongReplicaError: It cannot be used.
        """
        try:
            async with asyncio.timeout(timeout):
                hello = (await self._hello).hello
        except TimeoutError as error:
            raise StreamLostError(f"no greeting within {timeout:g} s") from error
        except StreamLostError as error:
            if not str(error).startswith(grpc.StatusCode.UNIMPLEMENTED.name):
                raise
            problem = f"does not serve {self._kind.method}: it has another version of Moorage"
            raise WrongReplicaError(problem) from error
        if not works_with(hello.moorage_version, __version__):
            problem = f"runs Moorage {hello.moorage_version:.30}, too far from {__version__}"
            raise WrongReplicaError(problem)
        if not self._kind.answers(hello.plugins):
            raise WrongReplicaError("answers as another service")
        self.replica, self.plugins = hello.replica, list(hello.plugins)
        self.moorage_version = hello.moorage_version
        self.version = digest_of(self.plugins)
        former: pb.FormerProcess = hello.former
        # A mark has room for the beginning of a long name.
        named = (each.name for each in self.plugins if mark.kept_of(each.name) == former.plugin)
        former.plugin = next(named, former.plugin)
        return former

    async def synchronize(
        self, policy: pb.Policy, kinds: Kinds, wait_until_idle: WaitUntilIdle
    ) -> None:
        """Send the whole state and wait until the replica has it; cycles come first.

        Args:
            policy: The policy.
            kinds: The additional kinds whose objects the replica gets, now and later.
            wait_until_idle: Waits until no cycle runs.

        Raises:
            StreamLostError: The stream broke.
            SessionRefusedError: The replica cannot use the policy.
        """
        self._kinds = kinds
        unacknowledged: deque[asyncio.Future[Any]] = deque()
        with closing(self._feed.full(policy, kinds)) as parts:
            while True:
                await wait_until_idle()
                if (part := next(parts, None)) is None:
                    break
                self.sent_generation = part.generation
                unacknowledged.append(self._send(part, "full"))
                if len(unacknowledged) == PARTS_AHEAD:
                    await _accepted(unacknowledged.popleft())
        for acknowledgement in unacknowledged:
            await _accepted(acknowledgement)

    def send_changes(self) -> None:
        """Send the changes since the last message.

        A replica that does not keep up gets them together, later.

        Raises:
            StreamLostError: The replica is too far behind.
        """
        if self.keeps_up:
            self.flush()

    def flush(self) -> None:
        """Send the changes since the last message, even to a replica that does not keep up.

        Raises:
            StreamLostError: The replica is too far behind.
        """
        if self._feed.state.generation == self.sent_generation:
            return
        state = self._outstanding()
        if state is not None:
            self._send(state, "delta")

    async def caught_up(self) -> None:
        """Send the changes, and wait until the replica has them; for calls outside of the stream.

        Raises:
            StreamLostError: The stream broke, or the replica is too far behind.
        """
        self.flush()
        if self._newest is not None:
            await asyncio.shield(self._newest)

    async def switch(self, policy: pb.Policy) -> None:
        """Have the replica run another policy from here on; a new session only makes it ready.

        Raises:
            StreamLostError: The stream broke.
            SessionRefusedError: The replica cannot use the policy, and goes on with the former one.
        """
        state = pb.State(
            generation=self.sent_generation, partial=not self.sent_generation, policy=policy
        )
        await _accepted(self._send(state))

    def open_kinds(self, kinds: Kinds) -> None:
        """Send the replica all objects of additional kinds, now and later.

        Raises:
            StreamLostError: The stream broke.
        """
        opened, self._kinds = kinds - self._kinds, self._kinds | kinds
        for state in self._feed.opening(self.sent_generation, opened) if opened else ():
            self._send(state, "delta")

    def keep_kinds(self, kinds: Kinds) -> None:
        """Remove the objects of all additional kinds but *kinds* from the replica.

        Raises:
            StreamLostError: The stream broke.
        """
        closed, self._kinds = sorted(self._kinds - kinds), self._kinds & kinds
        if closed:
            removed = [kind_to_proto(kind) for kind in closed]
            self._send(pb.State(generation=self.sent_generation, removed_kinds=removed))

    def can_serve(self, generation: int) -> bool:
        """Whether work that is sent now can be about the state as of *generation*."""
        return generation in (self.sent_generation, self._feed.state.generation)

    @property
    def keeps_up(self) -> bool:
        """Whether the replica has taken all messages that were sent."""
        return not self._stream.outbox

    def start(
        self, cycle: Cycle, part: Part, deadline: float, generation: int | None = None
    ) -> "tuple[asyncio.Future[Any], NodeRows]":
        """Send what is asked about a cycle, with all changes before it in the same message.

        With a *generation* that it can serve, later changes are left for the next message.

        Returns:
            The answer to come, and the rows that it will be about.

        Raises:
            StreamLostError: The stream broke, or the replica is too far behind.
        """
        feed, state = self._feed, None
        if feed.state.generation != self.sent_generation and generation != self.sent_generation:
            state = self._outstanding()
        request = self._kind.request()
        message = request.cycle
        about = _fill(cycle, part, part.rows or feed.index.find(part.nodes), message)
        if cycle.added_pods:
            _add_pods(cycle.added_pods, feed.state.rows.of, message)
        message.id, answer = self._stream.expect(deadline)
        left = (deadline - asyncio.get_running_loop().time()) * REPLICA_SHARE
        message.timeout.FromNanoseconds(max(int(left * 1e9), 1_000_000))
        size = 0
        if state is not None:
            *before, state = in_parts(state)
            for each in before:
                self._send(each, "delta")
            request.state.CopyFrom(state)
            size = state.ByteSize()
            self._metrics.sent["delta"](size)
        encoded = request.SerializeToString()
        self._metrics.sent["cycle"](len(encoded) - size)
        self._stream.send(encoded)
        return answer, about

    async def wait(self, retry: ReportRetry) -> None:
        """Wait until the stream breaks; meanwhile report what plugins ask for, and keep `problems`.

        Raises:
            StreamLostError: Always, in the end.
        """
        following = None
        if self._kind.runs_cycles:
            following = asyncio.create_task(follow(self.channel, retry, self._take_problems))
        try:
            await self._stream.wait()
        finally:
            if following is not None:
                following.cancel()

    def break_off(self, reason: str) -> None:
        """Give the session up."""
        self._stream.break_off(reason)

    async def close(self) -> None:
        """End the session."""
        await self._stream.close("the session was closed")
        await self.channel.close()

    def _take_problems(self, problems: Mapping[str, str]) -> None:
        self.problems = problems

    def _receive(self, message: Any) -> None:
        answer = message.WhichOneof("answer")
        if answer == "result":
            self._stream.resolve(message.result.cycle, message)
            generation = message.result.generation
        elif answer == "acknowledgement":
            generation = message.acknowledgement.generation
            if self._unacknowledged:
                self._stream.resolve(self._unacknowledged.popleft(), message)
        elif answer == "hello":
            self._stream.resolve(self._greeting, message)
            return
        else:
            return
        if generation:  # 0 while it is sent a full snapshot
            self._metrics.confirmed(generation)

    def _outstanding(self) -> pb.State | None:
        try:
            self.sent_generation, state = self._feed.since(self.sent_generation, self._kinds)
        except LookupError as error:
            self.break_off(str(error))  # the next session begins with a full snapshot
            raise StreamLostError(str(error)) from error
        return state

    def _send(self, state: pb.State, part: str = "") -> "asyncio.Future[Any]":
        """Send a state; return its acknowledgement. *part* is what its bytes are counted as."""
        *before, state = in_parts(state)
        for each in before:
            self._send_one(each, part)
        self._newest = self._send_one(state, part)
        return self._newest

    def _send_one(self, state: pb.State, part: str) -> "asyncio.Future[Any]":
        if not state.partial:
            self.state_generation = state.generation
        number, acknowledgement = self._stream.expect(math.inf)
        self._unacknowledged.append(number)
        encoded: bytes = self._kind.request(state=state).SerializeToString()
        if part:
            self._metrics.sent[part](len(encoded))
        self._stream.send(encoded)
        return acknowledgement


def _fill(cycle: Cycle, part: Part, rows: NodeRows, message: pb.Cycle) -> NodeRows:
    """Write what is asked about a cycle; return the rows that the answer will be about."""
    about = rows if part.positions is None else rows.subset(part.positions)
    message.candidates = about.bitmap if part.stage != "shard" else rows.bitmap
    if part.stage == "shard":
        message.shard = about.bitmap or b"\0"  # an empty bitmap would mean all nodes
    for plugin, values in part.raw.items():
        gathered = values[about.positions].astype("<f8")
        message.raw.add(plugin=plugin, raw=gathered.tobytes())
    message.profile = part.profile or cycle.profile
    message.pod.json = cycle.pod_json
    if cycle.plugin:
        message.plugin = cycle.plugin
    if part.refused:
        message.refused.update(part.refused)
    for row, manifest in about.given:
        message.overrides.add(row=row, json=encode(manifest))
    if cycle.traceparent and not part.profile:
        message.traceparent = cycle.traceparent
    if cycle.excluded_pods:
        message.excluded_pods.extend(cycle.excluded_pods)
    return about


def _add_pods(pods: Sequence[Pod], row_of: Mapping[str, int], message: pb.Cycle) -> None:
    """Write the first pods that the cycle adds, as many as a message may be long."""
    size = 0
    for pod in pods:
        content = encode(pod)
        size += len(content)
        if size > PART_BYTES:
            return
        if (row := row_of.get(pod.spec.node_name)) is not None:
            message.added_pods.add(row=row, json=content)


async def _accepted(acknowledgement: "asyncio.Future[Any]") -> None:
    problem = (await acknowledgement).acknowledgement.policy_error
    if problem:
        raise SessionRefusedError(problem)
