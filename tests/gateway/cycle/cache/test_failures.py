"""Equal pods and plugins that fail, or say what they should not: the same comes of it as without
memory, and nobody is asked twice each time.

The nodes are those of `fill`: n1 to n3 fit, n4 is full, n5 is tainted.
"""

from pathlib import Path
from typing import Any

import pytest

from moorage import FilterPlugin, Nodes, Normalization, Pod, Rejection, Scope, ScorePlugin
from tests.gateway.cycle.cache.caching import (
    NAMES,
    Asked,
    caching,
    fill,
    noting,
    of_set,
    policy,
)
from tests.gateway.cycle.cache.odd import both, outcome, touch
from tools.inprocess.gateway import Gateway


class Moody(FilterPlugin):
    """Fails about nodes that it has no number of."""

    depends_on = Scope.NODE
    calls: list[list[str]]
    broken: set[str]

    def filter(self, pod: Pod, nodes: Nodes) -> Any:
        self.calls.append(sorted(nodes.names))
        if self.broken & set(nodes.names):
            raise ValueError("no data")
        first = [name == "n1" for name in nodes.names]
        return nodes.verdicts().reject(first, Rejection("is the first"))


class MoodyScores(ScorePlugin):
    """Fails in the same way."""

    depends_on = Scope.NODE
    normalization = Normalization.REVERSED_MAXIMUM
    calls: list[list[str]]
    broken: set[str]

    def score(self, pod: Pod, nodes: Nodes) -> Any:
        self.calls.append(sorted(nodes.names))
        if self.broken & set(nodes.names):
            raise ValueError("no data")
        return [float(node.labels.get("liked", "1")) for node in nodes]


@pytest.fixture(autouse=True)
def fresh() -> None:
    for kind in (Moody, MoodyScores):
        kind.calls, kind.broken = [], set()


def text(failure_policy: str) -> str:
    return policy(
        "{name: Fits}, {name: Moody}",
        "{name: Likes}, {name: MoodyScores, weight: 2}",
        ", ".join(
            f"{{name: {name}, failurePolicy: {failure_policy}}}"
            for name in ("Moody", "MoodyScores")
        ),
    )


@pytest.mark.parametrize("failure_policy", ["Ignore", "Abort"])
@pytest.mark.parametrize("kind", [Moody, MoodyScores])
async def test_a_plugin_that_fails_for_a_while(
    tmp_path: Path, kind: type[Any], failure_policy: str
) -> None:
    async with both(tmp_path, text(failure_policy), Moody, MoodyScores) as (memory, plain):
        good = await outcome(plain, "good")
        assert len(good["answers"]) == 2
        assert await outcome(memory, "first") == good
        kind.broken = {"n2"}
        bad = await outcome(plain, "bad")
        assert bad != good
        for name in ("second", "third"):
            assert await outcome(memory, name) == bad
        kind.broken = set()
        for name in ("fourth", "fifth", "sixth"):
            assert await outcome(memory, name) == good
        kind.calls = []
        assert await outcome(memory, "seventh") == good
        assert kind.calls == []

        kind.broken = {"n2"}
        for process in (memory, plain):
            await touch(process, "n2")
        for name in ("eighth", "ninth"):
            assert await outcome(memory, name) == bad
        kind.broken = set()
        for name in ("tenth", "eleventh"):
            assert await outcome(memory, name) == good


@pytest.mark.parametrize("kind", [Moody, MoodyScores])
async def test_a_plugin_that_goes_on_failing_is_asked_once_each_time(
    tmp_path: Path, kind: type[Any]
) -> None:
    plugins = (*noting(Asked()), Moody, MoodyScores)
    async with caching(tmp_path, *plugins, text=text("Ignore")) as process:
        await fill(process)
        kind.broken = {"n2"}
        for name in ("first", "second"):
            await outcome(process, name)
        await asked_once(process, kind, "a")
        kind.broken = set()
        for name in ("third", "fourth"):
            await outcome(process, name)
        kind.broken = {"n2"}
        await touch(process, "n2")
        await outcome(process, "fifth")
        await asked_once(process, kind, "b")


async def asked_once(process: Gateway, kind: type[Any], prefix: str) -> None:
    for number in range(3):
        kind.calls = []
        await outcome(process, f"{prefix}-{number}")
        assert len(kind.calls) == 1


async def test_nodes_that_are_asked_about_along_must_not_fail_a_call(tmp_path: Path) -> None:
    """They have changed, so it is as good a time as any; but the call is not about them."""
    plugins = (*noting(Asked()), Moody, MoodyScores)
    async with caching(tmp_path, *plugins, text=text("Abort")) as process:
        await fill(process)
        for name in ("first", "second"):
            good = await outcome(process, name)
        Moody.broken = {"n1"}
        await touch(process, "n1", "n2")
        status, answer = await process.call(
            "filter", {"Pod": of_set("third"), "NodeNames": NAMES[1:]}
        )
        assert (status, answer["NodeNames"]) == (200, ["n2", "n3"])
        Moody.broken = set()
        assert await outcome(process, "fourth") == good

        await touch(process, "n5")
        await outcome(process, "fifth")
        MoodyScores.broken = {"n3"}
        await touch(process, "n3", taint="gpu")
        await touch(process, "n2")
        left = await outcome(process, "sixth")
        assert left["errors"] == [None, None]
        assert left["answers"][0][1]["NodeNames"] == ["n2", "n5"]
        assert left["answers"][1][0] == 200
        assert MoodyScores.calls[-2:] == [["n2", "n3"], ["n2", "n5"]]
