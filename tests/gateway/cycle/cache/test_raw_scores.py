"""Equal pods and raw scores of all sorts: the totals are those of a gateway without memory."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from moorage import Normalization, Pod, Scope, ScorePlugin
from tests.gateway.cycle.cache.caching import remembered
from tests.gateway.cycle.cache.odd import both, outcome, touch
from tools.inprocess.gateway import Gateway


class Strange(ScorePlugin):
    """Says of nodes what a test has it say; a label's number otherwise."""

    depends_on = Scope.NODE
    says: ClassVar[dict[str, float]] = {}
    calls: ClassVar[list[int]] = []

    def score(self, pod: Pod, nodes: Any) -> Any:
        self.calls.append(len(nodes))
        return [self.says.get(node.name, float(node.labels.get("liked", "1"))) for node in nodes]


class StrangeMaximum(Strange):
    """The best of these scores becomes 100."""

    depends_on = Scope.NODE
    normalization = Normalization.MAXIMUM


class StrangeReversed(Strange):
    """The lowest of these scores is the best."""

    depends_on = Scope.NODE
    normalization = Normalization.REVERSED_MAXIMUM


PLUGINS = (Strange, StrangeMaximum, StrangeReversed)
ODD = (
    ("Strange", 101.0),
    ("Strange", -1.0),
    ("Strange", 100.0 + 1e-9),
    ("StrangeMaximum", -5.0),
    ("StrangeMaximum", 1e307),
    ("StrangeReversed", -5.0),
    ("StrangeReversed", 1e307),
)


def profile(plugin: str, failure_policy: str) -> str:
    return (
        f"- schedulerName: {plugin}-{failure_policy}\n"
        "  plugins:\n    multiPoint: {disabled: [{name: '*'}]}\n"
        f"    score: {{enabled: [{{name: Likes}}, {{name: {plugin}, weight: 3}}]}}\n"
        f"  pluginConfig: [{{name: {plugin}, failurePolicy: {failure_policy}}}]\n"
    )


TEXT = (
    "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nscoreScale: 100\nprofiles:\n"
    + "".join(profile(kind.name, policy) for kind in PLUGINS for policy in ("Ignore", "Abort"))
)


@pytest.fixture(autouse=True)
def fresh() -> None:
    Strange.says.clear()
    Strange.calls.clear()


@pytest.fixture
async def gateways(tmp_path: Path) -> AsyncIterator[tuple[Gateway, Gateway]]:
    async with both(tmp_path, TEXT, *PLUGINS) as made:
        yield made


@pytest.mark.parametrize("failure_policy", ["Ignore", "Abort"])
async def test_what_replicas_would_not_take(
    gateways: tuple[Gateway, Gateway], failure_policy: str
) -> None:
    memory, plain = gateways
    for number, (plugin, odd) in enumerate(ODD):
        spec = {"schedulerName": f"{plugin}-{failure_policy}", "priority": number}
        good = await outcome(plain, "good", **spec)
        Strange.says["n2"] = odd
        bad = await outcome(plain, "bad", **spec)
        assert bad != good
        for name in ("first", "second", "third"):
            assert await outcome(memory, name, **spec) == bad
        Strange.calls.clear()
        assert await outcome(memory, "fourth", **spec) == bad
        assert len(Strange.calls) == 1, "not twice each time"
        Strange.says.clear()
        await touch(memory, "n2")
        for name in ("fifth", "sixth"):
            assert await outcome(memory, name, **spec) == good


@pytest.mark.parametrize("failure_policy", ["Ignore", "Abort"])
async def test_what_replicas_would_not_take_later_on(
    gateways: tuple[Gateway, Gateway], failure_policy: str
) -> None:
    memory, plain = gateways
    for number, (plugin, odd) in enumerate(ODD):
        spec = {"schedulerName": f"{plugin}-{failure_policy}", "priority": number}
        good = await outcome(plain, "good", **spec)
        for name in ("first", "second", "third"):
            assert await outcome(memory, name, **spec) == good
        Strange.says["n2"] = odd
        await touch(memory, "n2")
        bad = await outcome(plain, "bad", **spec)
        for name in ("fourth", "fifth"):
            assert await outcome(memory, name, **spec) == bad
        Strange.says.clear()
        await touch(memory, "n2")
        assert await outcome(memory, "sixth", **spec) == good


async def test_what_replicas_take(gateways: tuple[Gateway, Gateway]) -> None:
    memory, plain = gateways
    for kind in PLUGINS:
        for value in (0.0, 33.3, 100.0):
            spec = {"schedulerName": f"{kind.name}-Abort", "priority": int(value)}
            Strange.says |= {"n2": value, "n3": 7.25}
            good = await outcome(plain, "good", **spec)
            for name in ("first", "second", "third"):
                assert await outcome(memory, name, **spec) == good
            assert await remembered(memory, "third") == (0, 5)
