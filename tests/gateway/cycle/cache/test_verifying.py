"""Replicas confirm a share of the cached results, so that a wrong `depends_on` is found."""

from pathlib import Path

import pytest

from moorage import FilterPlugin, Node, Pod, Rejection, Scope, ScorePlugin
from tests.gateway.cycle.cache.caching import NAMES, Asked, caching, fill, noting, of_set, policy
from tests.gateway.sharing import place
from tools.inprocess.gateway import Gateway


class ByName(FilterPlugin):
    """Declares that it depends on the node alone, and looks at the pod's name."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("node is for others") if pod.name == "odd" else None


class LikesNames(ScorePlugin):
    """The same for scores."""

    depends_on = Scope.NODE

    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.name == "n1") * (100 if pod.name == "odd" else 50)


def differences(process: Gateway, phase: str) -> float:
    return process.sample("moorage_cache_differences_total", phase=phase)


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        (policy("{name: Fits}, {name: ByName}"), "filter"),
        (policy(scores="{name: LikesNames}"), "score"),
    ],
)
async def test_a_plugin_that_depends_on_more_than_it_declares_is_found(
    tmp_path: Path, text: str, phase: str
) -> None:
    plugins = (*noting(Asked()), ByName, LikesNames)
    async with caching(tmp_path, *plugins, text=text, cache_verify_share=1) as process:
        await fill(process)
        for name in ("first", "second", "third"):
            await place(process, of_set(name), NAMES)
        assert differences(process, phase) == 0
        placed = await place(process, of_set("odd"), NAMES)
        assert differences(process, phase) == 1
        if phase == "filter":
            assert placed["filter"]["NodeNames"] == [], "the answer is the fresh one"
        else:
            assert placed["scores"]["n1"] == 100, "the answer is the fresh one"


async def test_plugins_that_declare_rightly_are_confirmed(tmp_path: Path) -> None:
    async with caching(tmp_path, *noting(Asked()), cache_verify_share=1) as process:
        await fill(process)
        for number in range(6):
            await place(process, of_set(f"p{number}"), NAMES)
        for phase in ("filter", "score"):
            assert process.sample("moorage_cached_phases_total", phase=phase, extent="whole") == 4
            assert differences(process, phase) == 0
