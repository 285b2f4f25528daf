"""What a service shows: failures in the background of plugins, and the work under way.

The work is marked for the next process, if this one ends.
"""

import asyncio
import re
from typing import Any

import aiohttp
import msgspec

from moorage import Nodes, Pod
from moorage.execution import mark
from moorage.v1 import replica_pb2, types_pb2
from tests.filter.sessions import cycle, filtering, full_state
from tests.passing import Passes
from tools.waiting import until


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


class FailsBehind(Passes):
    """Works at nodes, and fails in the background."""

    async def start(self) -> None:
        self.background(self._poll)

    async def _poll(self) -> None:
        raise OSError("no server")


PROBLEM = r"_poll failed (once|\d+ times), \S+ ago: OSError: no server \(tests/\S+\.py:\d+\)"


async def test_readyz_metrics_and_list_plugins_show_failures_in_the_background() -> None:
    async with filtering(FailsBehind) as service, aiohttp.ClientSession() as session:

        async def ready() -> Any:
            async with session.get(f"http://{service.admin}/readyz") as response:
                assert response.status == 200
                return await response.json()

        async def noted() -> bool:
            return "notes" in await ready()

        assert not await noted()
        await service.session(full_state(1, FailsBehind))
        await until(noted)
        answer = await ready()
        assert answer["status"] == "degraded", "it works all the same"
        (note,) = answer["notes"]
        assert re.fullmatch(f"plugin FailsBehind: {PROBLEM}", note["note"])
        async with session.get(f"http://{service.admin}/metrics") as metrics:
            counted = f'moorage_background_failures_total{{plugin="{FailsBehind.name}"}}'
            assert counted in await metrics.text()
        (listed,) = (await service.stub.ListPlugins(replica_pb2.ListPluginsRequest())).plugins
        assert re.fullmatch(PROBLEM, listed.background_problem)
