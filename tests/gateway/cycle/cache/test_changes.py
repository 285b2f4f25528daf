"""Equal pods while nodes change: replicas are asked about these nodes only, others when asked anew.

The nodes are those of `fill`: n1 to n3 fit, n4 is full, n5 is tainted.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.up.processes import free_ports
from sandbox.apiserver.resources.paths import parse
from tests.gateway.cycle.cache.caching import (
    FULL,
    NAMES,
    Asked,
    caching,
    decided,
    events,
    fill,
    node,
    noting,
    of_set,
    place_all,
    told,
)
from tests.gateway.sharing import place, same
from tools.inprocess.api import Object, until
from tools.inprocess.gateway import Gateway, binder_service


@dataclass(frozen=True, slots=True)
class Warm:
    """A gateway that two equal pods were placed by, and what plugins are asked from there on."""

    process: Gateway
    asked: Asked
    first: Object

    async def place(self, name: str, *nodes: str) -> Object:
        return await place(self.process, of_set(name), nodes or NAMES)

    async def told(self, resource: str, change: Callable[[], Any]) -> None:
        """Change the cluster; wait until the gateway has heard of it."""
        await told(self.process, resource, change)

    async def update(self, name: str, part: str = "", **fields: Any) -> None:
        """Replace a node, or its status, by that of one with other properties."""
        made = node(name, **fields)
        path = parse(f"/api/v1/nodes/{name}{part}")
        await self.told("nodes", lambda: self.process.api.server.cluster.update(path, made))


@pytest.fixture
async def warm(tmp_path: Path) -> AsyncIterator[Warm]:
    asked = Asked()
    (port,) = free_ports(1)
    async with (
        caching(tmp_path, *noting(asked), binder=f"127.0.0.1:{port}") as process,
        binder_service(tmp_path, port=port),
    ):
        await fill(process)
        first, _ = await place_all(process, "first", "second")
        asked.taken()
        yield Warm(process, asked, first)


async def bind(process: Gateway, obj: Object, name: str) -> str:
    metadata = obj["metadata"]
    names = {"PodName": metadata["name"], "PodNamespace": "default", "PodUID": metadata["uid"]}
    _, answer = await process.call("bind", {**names, "Node": name})
    return str(answer["Error"])


async def test_a_label(warm: Warm) -> None:
    await warm.told("nodes", lambda: warm.process.api.label("/api/v1/nodes/n1", liked="6"))
    placed = await warm.place("third")
    assert warm.asked.taken() == ([["n1"]], [["n1"]])
    assert placed["filter"] == warm.first["filter"]
    assert placed["scores"] == {"n1": 51, "n2": 17, "n3": 26}, "the maximum is another"
    decision = await decided(warm.process, "third")
    for half, count in (("filter", 4), ("score", 2)):
        assert decision[half]["cachedNodes"] == count
        assert decision[half]["cachedFrom"] == "default/second"
    same(placed, await warm.place("fourth"))
    assert warm.asked.taken() == ([], [])
    decision = await decided(warm.process, "fourth")
    assert decision["filter"]["cachedFrom"] == "default/third"


async def test_a_taint_and_its_end(warm: Warm) -> None:
    await warm.update("n3", taint="gpu")
    placed = await warm.place("third")
    assert placed["filter"]["NodeNames"] == ["n1", "n2"]
    assert placed["scores"] == {"n1": 26, "n2": 51}
    assert warm.asked.taken() == ([["n3"]], [])
    await warm.update("n3")
    same(warm.first, await warm.place("fourth"))
    assert warm.asked.taken() == ([["n3"]], [["n3"]])


async def test_what_a_node_has_to_offer(warm: Warm) -> None:
    await warm.update("n4", "/status", pods="1")
    await warm.update("n2", "/status", pods="0")
    placed = await warm.place("third")
    assert placed["filter"]["NodeNames"] == ["n1", "n3", "n4"]
    assert placed["filter"]["FailedNodes"] == {"n2": FULL.reason}
    assert placed["scores"] == {"n1": 13, "n3": 38, "n4": 51}
    assert warm.asked.taken() == ([["n2", "n4"]], [["n2", "n4"]])


async def test_pods_that_come_and_go(warm: Warm) -> None:
    await warm.told("pods", lambda: warm.process.api.pod("load", nodeName="n1"))
    placed = await warm.place("third")
    assert placed["scores"] == {"n1": 34, "n2": 34, "n3": 51}
    assert warm.asked.taken() == ([["n1"]], [["n1"]])
    path = "/api/v1/namespaces/default/pods/load"
    await warm.told("pods", lambda: warm.process.api.delete(path))
    same(warm.first, await warm.place("fourth"))
    assert warm.asked.taken() == ([["n1"]], [["n1"]])


async def test_a_bind_counts_at_once_and_changes_nothing_more_when_it_is_seen(warm: Warm) -> None:
    load = warm.process.api.pod("load", schedulerName="moorage")
    await until(lambda: events(warm.process, "pods") >= 1)
    before = events(warm.process, "pods")
    assert await bind(warm.process, load, "n2") == ""
    placed = await warm.place("third")
    assert placed["scores"] == {"n1": 17, "n2": 51, "n3": 51}
    assert warm.asked.taken() == ([["n2"], ["n2"]], [["n2"]])  # at the bind, and for the pod
    await until(lambda: events(warm.process, "pods") > before)
    same(placed, await warm.place("fourth"))
    assert warm.asked.taken() == ([], [])


async def test_a_bind_that_fails_is_forgotten(warm: Warm) -> None:
    load = warm.process.api.pod("load", schedulerName="moorage")
    await until(lambda: events(warm.process, "pods") >= 1)
    warm.process.api.fault("create", "pods/binding", status=403)
    assert await bind(warm.process, load, "n2") != ""
    same(warm.first, await warm.place("third"))
    assert warm.asked.taken() == ([["n2"], ["n2"]], [["n2"]])  # at the bind, and for the pod


async def test_a_node_that_gets_the_row_of_another(warm: Warm) -> None:
    await warm.told("nodes", lambda: warm.process.api.delete("/api/v1/nodes/n3"))
    placed = await warm.place("third")
    assert placed["filter"]["NodeNames"] == ["n1", "n2"]
    assert "not known" in placed["filter"]["FailedAndUnresolvableNodes"]["n3"]
    assert warm.asked.taken() == ([], [])
    new = node("n9", pods="0")
    await warm.told("nodes", lambda: warm.process.api.create("/api/v1/nodes", new))
    placed = await warm.place("fourth", *NAMES, "n9")
    assert placed["filter"]["NodeNames"] == ["n1", "n2"]
    assert placed["filter"]["FailedNodes"] == dict.fromkeys(("n4", "n9"), FULL.reason)
    assert warm.asked.taken()[0] == [["n9"]]


async def test_new_nodes(warm: Warm) -> None:
    for name in ("n6", "n7"):
        new = node(name)
        await warm.told("nodes", partial(warm.process.api.create, "/api/v1/nodes", new))
    placed = await warm.place("third", *NAMES, "n6", "n7")
    assert placed["filter"]["NodeNames"] == ["n1", "n2", "n3", "n6", "n7"]
    assert placed["scores"]["n7"] == 51
    assert warm.asked.taken() == ([["n6", "n7"]], [["n6", "n7"]])


async def test_a_change_elsewhere_asks_nothing(warm: Warm) -> None:
    await warm.update("n5")
    placed = await warm.place("third", *NAMES[:4])
    assert placed["filter"]["NodeNames"] == ["n1", "n2", "n3"]
    assert warm.asked.taken() == ([], [])
