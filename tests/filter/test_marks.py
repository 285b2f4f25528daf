"""What a process marks of the work under way, for the next one if it ends."""

import asyncio

import msgspec

from moorage import Nodes, Pod
from moorage.execution import mark
from moorage.v1 import types_pb2
from tests.filter.sessions import cycle, filtering, full_state
from tests.passing import Passes


def named(name: str) -> types_pb2.Pod:
    metadata = {"namespace": "shop", "name": name, "uid": name}
    spec = {"schedulerName": "moorage"}
    return types_pb2.Pod(json=msgspec.json.encode({"metadata": metadata, "spec": spec}))


def marked() -> str:
    return mark.text_at(bytes(mark.memory), slice(mark.POD, mark.CYCLE.stop))


async def test_the_answer_of_one_session_leaves_the_mark_of_another_s_cycle() -> None:
    begun = {name: asyncio.Event() for name in ("first", "second")}
    may_end = {name: asyncio.Event() for name in begun}

    class Waits(Passes):
        async def prepare(self, pod: Pod, nodes: Nodes) -> None:
            begun[pod.name].set()
            await may_end[pod.name].wait()

    async with asyncio.timeout(60), filtering(Waits) as service:
        one, other = [await service.session(full_state(1, Waits)) for _ in range(2)]
        first = asyncio.create_task(one.ask(cycle=cycle(pod=named("first"))))
        await begun["first"].wait()
        second = asyncio.create_task(other.ask(cycle=cycle(pod=named("second"))))
        assert marked() == "shop/first"
        may_end["first"].set()
        await first
        await begun["second"].wait()
        # Whatever the session does after its answer, it has done before it answers again.
        for _ in range(2):
            answer = await one.ask(cycle=cycle(pod=types_pb2.Pod(json=b"no pod")))
            assert answer.result.status.code
        assert marked() == "shop/second"
        may_end["second"].set()
        await second
        await other.ask(cycle=cycle(pod=types_pb2.Pod(json=b"no pod")))
        assert marked() == "", "nothing is under way"
