"""Equal pods and the reasons of filters: what is remembered of them, and shown, is right."""

from pathlib import Path

import pytest

from moorage import FilterPlugin, Node, Pod, Rejection, Scope
from tests.gateway.cycle.cache.caching import (
    Asked,
    caching,
    decided,
    fill,
    noting,
    of_set,
    policy,
    remembered,
)
from tests.gateway.cycle.cache.odd import outcome, touch
from tools.inprocess.api import Object


class Chatty(FilterPlugin):
    """Has a reason for every node and every time, which it should not."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection(f"{node.name} at {node.labels.get('touched')}")


async def test_ever_new_reasons_are_not_kept_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.cycle.cache.filter_cache.REASON_LIMIT", 7)
    text = policy("{name: Chatty}")
    async with caching(tmp_path, *noting(Asked()), Chatty, text=text) as process:
        await fill(process)
        known = []
        for number in range(12):
            made = await outcome(process, f"p{number}")
            (answer,) = made["answers"]
            reasons = answer[1]["FailedAndUnresolvableNodes"]
            assert len(set(reasons.values())) == 5
            (plugin,) = made["plugins"]
            assert sorted(each["reason"] for each in plugin["reasons"]) == sorted(reasons.values())
            known.append((await remembered(process, f"p{number}"))[0])
            await touch(process, "n2")
            made = await outcome(process, f"q{number}")
            assert made["answers"][0][1]["FailedAndUnresolvableNodes"]["n2"] != reasons["n2"]
        assert 5 in known
        assert 0 in known[2:], "it began anew"


class After(FilterPlugin):
    """Lets all nodes pass that are left for it."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None


async def test_plugins_that_found_no_node_left_are_not_said_to_have_run(tmp_path: Path) -> None:
    text = policy("{name: NodeName}, {name: Fits}, {name: After}")
    plugins = (*noting(Asked()), After)
    async with caching(tmp_path, *plugins, text=text) as process:
        await fill(process)
        for name in ("first", "second", "third"):
            made = await outcome(process, name)
            assert filters_of(made) == ["NodeName", "Fits", "After"]
        await process.filter(of_set("fourth"), "n4", "n5")
        record = (await decided(process, "fourth"))["filter"]
        assert record["cachedNodes"] == 2
        assert [each["plugin"] for each in record["plugins"]] == ["NodeName", "Fits"]
        await process.filter(of_set("fifth"), "ghost")
        record = (await decided(process, "fifth"))["filter"]
        assert "plugins" not in record


def filters_of(made: Object) -> list[str]:
    return [each["plugin"] for each in made["plugins"]][:3]
