"""Plugins that compare manifests: what they said holds until any node changes, whatever pods do."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage import FilterPlugin, Nodes, Pod, Rejection, Scope, ScorePlugin, Scores, Verdicts
from moorage.plugin.base import Plugin
from sandbox.apiserver.resources.paths import parse
from tests.gateway.cycle.cache.caching import (
    NAMES,
    Asked,
    caching,
    fill,
    node,
    of_set,
    policy,
    told,
)
from tests.gateway.sharing import place
from tools.inprocess.api import until
from tools.inprocess.gateway import Gateway

MOST_LIKED = Rejection("node is liked too well")


def comparing(asked: Asked) -> tuple[type[Plugin], ...]:
    """Return plugins that compare nodes with all others, and note what they are asked."""

    class Modest(FilterPlugin):
        """Rejects the node that is liked best."""

        depends_on = Scope.MANIFESTS
        pod_fields = ()

        def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
            asked.filters.append(sorted(nodes.names))
            best = liked(nodes.cluster).max()
            return nodes.verdicts().reject(liked(nodes) == best, MOST_LIKED)

    class Share(ScorePlugin):
        """Prefers nodes with few pods that have a large share in all that is liked."""

        depends_on = Scope.MANIFESTS
        pod_fields = ()

        def score(self, pod: Pod, nodes: Nodes) -> Scores:
            asked.scores.append(sorted(nodes.names))
            share = 100 * liked(nodes) / liked(nodes.cluster).sum()
            scores: Scores = np.floor(share / (1 + nodes.requested("pods")))
            return scores

    return Modest, Share


def liked(nodes: Nodes) -> Scores:
    column = nodes.encoded("liked", lambda node: float(node.metadata.labels["liked"]))
    scores: Scores = column.map(lambda value: value or 0.0)
    return scores


@dataclass
class Compared:
    """A gateway that two pods were placed by, whose replicas' next question can be held."""

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

    async def place(self, name: str) -> dict[str, Any]:
        placed = await place(self.process, of_set(name), NAMES)
        return {**placed["filter"], "scores": placed["scores"]}

    async def like(self, name: str, liked: str) -> None:
        label = partial(self.process.api.label, f"/api/v1/nodes/{name}", liked=liked)
        await told(self.process, "nodes", label)


@pytest.fixture
async def compared(tmp_path: Path) -> AsyncIterator[Compared]:
    compared, text = Compared(), policy(filters="{name: Modest}", scores="{name: Share}")
    plugins = comparing(compared.asked)
    async with caching(tmp_path, *plugins, text=text, gate=compared.gate) as process:
        compared.process = process
        await fill(process)
        await compared.place("first")
        await compared.place("second")
        compared.asked.taken()
        yield compared


FOUR = ["n1", "n2", "n3", "n4"]


async def test_nobody_is_asked_while_nothing_changes(compared: Compared) -> None:
    placed = await compared.place("third")
    assert placed["NodeNames"] == FOUR
    assert placed["scores"] == {"n1": 6, "n2": 13, "n3": 20, "n4": 26}
    assert compared.asked.taken() == ([], [])


async def test_a_pod_changes_what_is_said_of_its_node_alone(compared: Compared) -> None:
    await touch(compared, "n4")
    placed = await compared.place("third")
    assert placed["scores"] == {"n1": 6, "n2": 13, "n3": 20, "n4": 13}
    assert compared.asked.taken() == ([["n4"]], [["n4"]])


async def test_a_manifest_changes_what_is_said_of_all_nodes(compared: Compared) -> None:
    await compared.like("n1", "85")
    placed = await compared.place("third")
    assert placed["NodeNames"] == ["n2", "n3", "n4", "n5"]
    assert placed["scores"] == {"n2": 2, "n3": 3, "n4": 4, "n5": 5}
    await compared.place("fourth")
    assert compared.asked.taken() == ([list(NAMES)], [["n2", "n3", "n4", "n5"]])


async def test_a_node_that_comes_or_goes_changes_what_is_said_of_all(compared: Compared) -> None:
    process = compared.process
    create = partial(process.api.create, "/api/v1/nodes", node("n85"))
    await told(process, "nodes", create)
    assert (await compared.place("third"))["NodeNames"] == list(NAMES)
    await told(process, "nodes", partial(process.api.delete, "/api/v1/nodes/n85"))
    placed = await compared.place("fourth")
    assert placed["NodeNames"] == FOUR
    assert placed["scores"] == {"n1": 6, "n2": 13, "n3": 20, "n4": 26}
    assert compared.asked.taken() == ([list(NAMES)] * 2, [list(NAMES), FOUR])


async def test_a_heartbeat_changes_nothing(compared: Compared) -> None:
    process = compared.process
    path = parse("/api/v1/nodes/n1/status")
    for time in ("2026-11-22T00:00:00Z", "2026-11-22T00:00:10Z"):
        beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": time}
        body = node("n1")
        body["status"] |= {"conditions": [beat]}
        await told(process, "nodes", partial(process.api.server.cluster.update, path, body))
        await compared.place(f"at-{time[-3:-1]}")
    assert len(compared.asked.taken()[0]) == 1, "only when the node became ready"


async def test_a_manifest_that_changes_while_filters_are_asked_about_another_node(
    compared: Compared,
) -> None:
    await touch(compared, "n4")
    compared.holds = True
    answer = asyncio.create_task(compared.process.filter(of_set("third"), *NAMES))
    await until(lambda: not compared.holds)
    await compared.like("n1", "85")
    compared.open.set()
    assert (await answer)["NodeNames"] == ["n2", "n3", "n4", "n5"]
    assert (await compared.place("fourth"))["NodeNames"] == ["n2", "n3", "n4", "n5"]


async def test_a_manifest_that_changes_while_scorers_are_asked_about_another_node(
    compared: Compared,
) -> None:
    await touch(compared, "n4")
    compared.holds = True
    answer = asyncio.create_task(compared.process.prioritize(of_set("third"), *FOUR))
    await until(lambda: not compared.holds)
    await compared.like("n1", "86")
    compared.open.set()
    scores = {each["Host"]: each["Score"] for each in await answer}
    assert scores == {"n1": 86, "n2": 2, "n3": 3, "n4": 2}
    fourth = await compared.process.prioritize(of_set("fourth"), *FOUR)
    assert {each["Host"]: each["Score"] for each in fourth} == scores


async def touch(compared: Compared, name: str) -> None:
    """Have a pod on a node, so that replicas are asked about this one again."""
    pod = of_set(f"on-{name}")
    pod["spec"] |= {"nodeName": name, "containers": [{"name": "c", "image": "app"}]}
    create = partial(compared.process.api.create, "/api/v1/namespaces/default/pods", pod)
    await told(compared.process, "pods", create)
