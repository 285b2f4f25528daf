"""What the gateway keeps of the decisions that a real kube-scheduler asked for."""

import json
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.scenarios.world import World
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("n1", "n2", "n3", "n4")
FULL = {"n4": "rack is full"}


async def get(session: aiohttp.ClientSession, path: str) -> Any:
    async with session.get(path) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def bound(stream: aiohttp.ClientResponse, name: str) -> list[Any]:
    """Return what the stream sends of a pod until it is bound."""
    sent: list[Any] = []
    while not sent or sent[-1]["outcome"] != "bound":
        event = (await stream.content.readuntil(b"\n\n")).decode()
        if event.startswith("event: decision"):
            item = msgspec.json.decode(event.split("data: ")[1])
            sent += [item] if item["pod"] == name else []
    return sent


async def test_decisions_are_found_by_what_became_of_them(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    async with (
        aiohttp.ClientSession(world.services.admin) as session,
        session.get("/decisions/stream") as stream,
        world.scheduler("annotated"),
    ):
        await world.create(pod("best", "annotated", score={"n3": 100, "n1": 40}, reject=FULL))
        first, *_, last = await bound(stream, "best")
        reason = "Moorage prefers n3 to n1, 100 to 40: Steered +60"
        assert (first["outcome"], first["id"]) == ("binding", last["id"])
        assert (last["node"], last["runnerUp"], last["reason"]) == ("n3", "n1", reason)
        assert (last["nodes"], last["feasible"], last["clusterNodes"]) == (4, 3, 4)

        nowhere = dict.fromkeys(NAMES, "rack is full")
        await world.create(pod("nowhere", "annotated", reject=nowhere))
        await world.condition("nowhere", "Unschedulable")
        await world.create(node("n5"))  # kube-scheduler tries the pod again
        await world.bound("nowhere")

        async def there() -> bool:
            found = await get(session, "/decisions?pod=nowhere&outcome=bound")
            return bool(found["items"])

        await world.until(there)
        again, *before = (await get(session, "/decisions?pod=nowhere"))["items"]
        assert (again["outcome"], again["node"]) == ("bound", "n5")
        assert again["attempt"] == len(before) + 1
        assert again["previous"] == before[0]["id"]
        (rejected,) = (await get(session, "/decisions?outcome=unschedulable&limit=1"))["items"]
        assert rejected["id"] == before[0]["id"]
        reason_of_none = "no node suits it: Steered rejected 4 of 4: rack is full"
        assert before[-1]["reason"] == reason_of_none
        (found,) = (await get(session, "/decisions?pod=best&node=n3&plugin=Steered&since=1h"))[
            "items"
        ]
        assert found == last

        path = f"/decisions/default/best/{last['id']}/nodes"
        table = {each["node"]: each for each in (await get(session, path))["items"]}
        assert [table[name]["rank"] for name in ("n3", "n1", "n2", "n4")] == [1, 2, 3, None]
        assert table["n1"]["scores"] == {"Steered": {"raw": 40.0, "normalized": 40.0}}
        assert (table["n4"]["plugin"], table["n4"]["reason"]) == ("Steered", "rack is full")

    text = (await world.pods())["best"]["metadata"]["annotations"]["moorage.io/decision"]
    written = json.loads(text)
    assert len(text) < 1024
    assert (written["winner"]["node"], written["runnerUp"]["node"]) == ("n3", "n1")
    assert written["reason"] == reason
