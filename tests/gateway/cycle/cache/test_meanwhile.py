"""Equal pods and nodes that change while replicas are being asked about others."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sandbox.apiserver.resources.paths import parse
from tests.gateway.cycle.cache.caching import (
    FULL,
    NAMES,
    TAINTED,
    Asked,
    caching,
    fill,
    node,
    noting,
    of_set,
    place_all,
    told,
)
from tests.gateway.sharing import place
from tools.inprocess.api import Object, until
from tools.inprocess.gateway import Gateway


@dataclass
class Held:
    """A gateway, and a gate that holds the next question of one half, or the other."""

    open: asyncio.Event = field(default_factory=asyncio.Event)
    holds: bool = False
    asked: Asked = field(default_factory=Asked)
    process: Gateway = field(init=False)

    async def gate(self, request: Any) -> bool:
        if self.holds and request.HasField("cycle"):
            self.holds = False
            await self.open.wait()
            self.open.clear()
        return True

    def hold(self) -> None:
        self.holds = True

    async def update(self, name: str, **fields: Any) -> None:
        made, path = node(name, **fields), parse(f"/api/v1/nodes/{name}")
        update = self.process.api.server.cluster.update
        await told(self.process, "nodes", lambda: update(path, made))

    async def like(self, name: str, liked: str) -> None:
        path = f"/api/v1/nodes/{name}"
        await told(self.process, "nodes", lambda: self.process.api.label(path, liked=liked))


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[Held]:
    held = Held()
    async with caching(tmp_path, *noting(held.asked), gate=held.gate) as held.process:
        await fill(held.process)
        await place_all(held.process, "first", "second")
        yield held


async def test_a_node_that_changes_while_filters_are_asked_about_another(held: Held) -> None:
    await held.update("n5")
    held.hold()
    answer = asyncio.create_task(held.process.filter(of_set("third"), *NAMES))
    await until(lambda: not held.holds)
    await held.update("n1", taint="gpu")
    held.open.set()
    filtered: Object = await answer
    assert filtered["NodeNames"] == ["n2", "n3", "n5"]
    assert filtered["FailedAndUnresolvableNodes"] == {"n1": TAINTED.reason}
    fourth = await place(held.process, of_set("fourth"), NAMES)
    assert fourth["filter"]["NodeNames"] == ["n2", "n3", "n5"]


async def test_a_node_that_comes_while_filters_are_asked_about_another(held: Held) -> None:
    await held.update("n5")
    held.hold()
    answer = asyncio.create_task(held.process.filter(of_set("third"), *NAMES, "n9"))
    await until(lambda: not held.holds)
    new = node("n9", pods="0")
    await told(held.process, "nodes", lambda: held.process.api.create("/api/v1/nodes", new))
    held.open.set()
    filtered: Object = await answer
    assert filtered["NodeNames"] == ["n1", "n2", "n3", "n5"]
    assert filtered["FailedNodes"] == dict.fromkeys(("n4", "n9"), FULL.reason)


async def test_a_node_that_changes_while_it_is_asked_about(held: Held) -> None:
    """Replicas are told of changes in the order in which they hear of questions."""
    await held.update("n5")
    held.hold()
    answer = asyncio.create_task(held.process.filter(of_set("third"), *NAMES))
    await until(lambda: not held.holds)
    await held.update("n5", taint="gpu")
    held.open.set()
    assert (await answer)["NodeNames"][:3] == ["n1", "n2", "n3"]
    fourth = await place(held.process, of_set("fourth"), NAMES)
    assert fourth["filter"]["NodeNames"] == ["n1", "n2", "n3"]


async def test_a_node_that_changes_while_scorers_are_asked_about_another(held: Held) -> None:
    names = ("n1", "n2", "n3")
    await held.like("n2", "4")
    held.hold()
    answer = asyncio.create_task(held.process.prioritize(of_set("third"), *names))
    await until(lambda: not held.holds)
    await held.like("n1", "8")
    held.open.set()
    scores = {each["Host"]: each["Score"] for each in await answer}
    assert scores == {"n1": 51, "n2": 26, "n3": 19}
    fourth = await place(held.process, of_set("fourth"), NAMES)
    assert fourth["scores"] == scores


async def test_a_node_that_changes_while_scorers_are_asked_about_it(held: Held) -> None:
    names = ("n1", "n2", "n3")
    await held.like("n2", "4")
    held.hold()
    answer = asyncio.create_task(held.process.prioritize(of_set("third"), *names))
    await until(lambda: not held.holds)
    await held.like("n2", "1")
    held.open.set()
    await answer
    fourth = await place(held.process, of_set("fourth"), NAMES)
    assert fourth["scores"] == {"n1": 17, "n2": 17, "n3": 51}


async def test_a_node_that_comes_while_scorers_are_asked_about_another(held: Held) -> None:
    await held.like("n2", "4")
    held.hold()
    names = ("n1", "n2", "n3", "n9")
    answer = asyncio.create_task(held.process.prioritize(of_set("third"), *names))
    await until(lambda: not held.holds)
    new = node("n9")
    await told(held.process, "nodes", lambda: held.process.api.create("/api/v1/nodes", new))
    held.open.set()
    scores = {each["Host"]: each["Score"] for each in await answer}
    assert scores == {"n1": 6, "n2": 23, "n3": 17, "n9": 51}


async def test_a_node_that_goes_while_scorers_are_asked_about_another(held: Held) -> None:
    names = ("n1", "n2", "n3")
    await held.like("n2", "4")
    held.hold()
    answer = asyncio.create_task(held.process.prioritize(of_set("third"), *names))
    await until(lambda: not held.holds)
    process = held.process
    await told(process, "nodes", lambda: process.api.delete("/api/v1/nodes/n3"))
    new = node("n9")
    await told(process, "nodes", lambda: process.api.create("/api/v1/nodes", new))
    held.open.set()
    scores = {each["Host"]: each["Score"] for each in await answer}
    assert scores == {"n1": 13, "n2": 51}
    fourth = await place(process, of_set("fourth"), (*names, "n9"))
    assert fourth["scores"] == {"n1": 6, "n2": 23, "n9": 51}
