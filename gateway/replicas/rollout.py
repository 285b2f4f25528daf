"""Brings another policy to the replicas of one service; called by `gateway.replicas.reload`.

First it is made ready beside the active one, while cycles go on: plugins start, and objects that
they read are sent. Then all replicas switch between two cycles.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from gateway.cluster.kinds import Readers
from gateway.replicas.session import SessionRefusedError
from gateway.replicas.set import Member, ReplicaSet
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.stream import StreamLostError

PREPARE_SECONDS = 30.0
"""How long a replica may take to start the plugins of a policy; cycles do not wait for it."""

SWITCH_SECONDS = 1.0
"""How long a replica may take to switch; cycles wait. One that needs longer starts again."""


class PolicyRefusedError(Exception):
    """A replica cannot run a policy, or cannot be asked; the message says which and why."""


class Rollout:
    """Changes the policy of the replicas of one pool.

    Attributes:
        kind: The kind of plugins that they run.
        share: What they run of the policy.
    """

    def __init__(self, replicas: ReplicaSet) -> None:
        """Change the policy of *replicas*."""
        self.kind, self.share = replicas.kind.policy, replicas.share
        self._replicas = replicas

    @asynccontextmanager
    async def ready(self, policy: pb.Policy, readers: Readers) -> AsyncIterator[None]:
        """Keep a policy ready in all replicas that take part, with the objects it reads.

        Raises:
            PolicyRefusedError: A replica cannot run it.
        """
        async with AsyncExitStack() as trials:
            problem = await self._all(lambda one: self._prepared(one, policy, readers, trials))
            if problem:
                raise PolicyRefusedError(problem)
            yield

    async def switch(self, policy: pb.Policy) -> str:
        """Have all replicas that take part run a policy that is ready; say which refuse it."""
        return await self._all(lambda member: self._switched(member, policy))

    async def settle(self, readers: Readers) -> None:
        """Take the objects from replicas that no plugin reads any more."""
        for member in self._replicas.all:
            self._replicas.objects.need(member.session, readers)
            with suppress(StreamLostError):  # the pool finds out
                member.session.keep_kinds(frozenset(readers))

    async def _all(self, ask: Callable[[Member], Coroutine[Any, Any, str]]) -> str:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(member)) for member in self._replicas.all]
        return "; ".join(problem for task in tasks if (problem := task.result()))

    async def _prepared(
        self, member: Member, policy: pb.Policy, readers: Readers, trials: AsyncExitStack
    ) -> str:
        """Return why a replica cannot run a policy, or nothing."""
        trial = self._replicas.session(member.place)
        trials.push_async_callback(trial.close)
        try:
            async with asyncio.timeout(PREPARE_SECONDS):
                await trial.greet(self._replicas.settings.session_timeout)
                await trial.switch(policy)
                member.session.open_kinds(frozenset(readers))
        except SessionRefusedError as error:
            return self._refusal(member, error)
        except (StreamLostError, TimeoutError) as error:
            if self._replicas.by_place.get(member.place) is not member:
                return ""  # when it is back it gets the policy that is active then
            return f"{self._name(member)} cannot be asked: {error or 'it does not answer in time'}"
        return ""

    async def _switched(self, member: Member, policy: pb.Policy) -> str:
        try:
            async with asyncio.timeout(SWITCH_SECONDS):
                await member.session.switch(policy)
        except SessionRefusedError as error:
            return self._refusal(member, error)
        except StreamLostError as error:
            self._replicas.mark_lost(member.place, member.session, str(error))
        except TimeoutError:
            self._replicas.give_up(member)
        return ""

    def _refusal(self, member: Member, error: SessionRefusedError) -> str:
        return f"{self._name(member)} refuses it: {error}"

    def _name(self, member: Member) -> str:
        return f"{self._replicas.name} at {member.place}"
