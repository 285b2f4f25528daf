"""The cache keeps raw scores; totals are worked out anew, of the nodes of each cycle."""

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from moorage import SKIP, Node, Nodes, Pod, Preparation, Scope, ScorePlugin, Scores
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.models import decode_pod, encode
from moorage.plugin.normalization import Normalization
from moorage.testing import make_node, make_pod
from moorage_host.plugins import CycleInput, Replica
from moorage_host.plugins.cache import CacheLimits
from moorage_host.plugins.host import Policy
from services.scorer.cache import ScoreCache
from services.scorer.engine import ScoreRun, run_scores
from services.scorer.plugins import BUILT_INS
from tests.gateway.random_clusters import RandomCluster


class Size(ScorePlugin):
    """Scores nodes by a label, the largest of the cycle with 100."""

    depends_on = Scope.NODE
    normalization = Normalization.MAXIMUM
    calls = 0

    def score_node(self, pod: Pod, node: Node) -> float:
        type(self).calls += 1
        return float(node.labels["size"])


class Ranked(ScorePlugin):
    """Knows by itself how its scores become 0..100, from what it prepared."""

    depends_on = Scope.NODE

    def __init__(self) -> None:
        super().__init__()
        self.most = 0.0

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        if "skip" in pod.labels:
            return SKIP
        self.most = max(float(node.labels["size"]) for node in nodes.cluster)
        return None

    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.labels["size"])

    def normalize(self, scores: Scores) -> Scores:
        return scores / self.most * 50


def replica(*plugins: ScorePlugin) -> Replica:
    made = Replica()
    enabled = [EnabledPlugin(plugin=p, weight=i, time_budget=30) for i, p in enumerate(plugins, 1)]
    made.policy = Policy(profiles={"p": Profile(name="p", plugins=tuple(enabled))})
    made.set_nodes((r, encode(make_node(f"n{r}", labels={"size": f"{r + 1}"}))) for r in range(4))
    made.generation = 1
    return made


def new_cache(**limits: Any) -> ScoreCache:
    def fail(*what: str) -> None:
        raise AssertionError(what)

    return ScoreCache(CacheLimits(**{"worth_seconds": 0.0, **limits}), fail)


async def scored(
    made: Replica, cache: ScoreCache | None, pod: Pod | None = None, shard: bytes = b"", **of: Any
) -> ScoreRun:
    work = CycleInput(profile="p", pod=pod or make_pod(), **of)
    _, run = await made.run(work, run_scores, Supervisor(), cache, shard)
    return run


async def test_totals_are_about_the_nodes_of_the_cycle() -> None:
    made, cache = replica(Size(), Ranked()), new_cache(verify_share=0.5)
    for names in (None, None, ("n0", "n1"), ("n2", "n0"), None):
        run, fresh = [await scored(made, each, names=names) for each in (cache, None)]
        assert run.totals is not None
        assert fresh.totals is not None
        assert np.allclose(run.totals, fresh.totals)
        assert [each.plugin for each in run.plugins] == [each.plugin for each in fresh.plugins]
        for one, other in zip(run.scores, fresh.scores, strict=True):
            assert (one.plugin, one.weight) == (other.plugin, other.weight)
            assert one.raw.tolist() == other.raw.tolist()
            assert one.normalized.tolist() == other.normalized.tolist()
    assert (run.cached_nodes, run.cached_from) == (4, "default/pod")


async def test_plugins_are_not_asked_about_nodes_that_did_not_change() -> None:
    made, cache, size = replica(Size()), new_cache(), Size
    for _ in range(2):
        await scored(made, cache)
    size.calls = 0
    made.set_nodes([(0, encode(make_node("n0", labels={"size": "9"})))])
    run = await scored(made, cache)
    assert (size.calls, run.cached_nodes) == (1, 3)
    assert run.totals is not None
    assert run.totals.tolist() == [100, 22, 33, 44]


async def test_a_plugin_that_skips_stays_without_an_opinion() -> None:
    made, cache = replica(Ranked()), new_cache()
    for _ in range(3):
        run = await scored(made, cache, make_pod(labels={"skip": ""}))
    assert run.cached_nodes == 4
    assert run.totals is None
    assert [each.skipped for each in run.plugins] == [True]


async def test_a_shard_gets_raw_scores_of_its_own_nodes() -> None:
    made, cache = replica(Size(), Ranked()), new_cache()
    for shard in (b"\x0f", b"\x0f", b"\x06"):
        run = await scored(made, cache, shard=shard, candidates=b"\x0f")
    assert {name: raw.tolist() for name, raw in run.raw.items()} == {
        "Size": [2, 3],
        "Ranked": [2, 3],
    }
    assert (run.cached_nodes, run.totals) == (2, None)


@pytest.mark.parametrize("seed", range(6))
async def test_the_cache_changes_no_score(seed: int) -> None:
    random, made = Random(seed), RandomCluster(Random(seed))
    kinds = [kind for kind in BUILT_INS if kind.depends_on < Scope.ANYTHING]
    world, cache = replica(*(kind() for kind in kinds if can_be_made(kind))), new_cache()
    snapshot, placed, total = world.snapshot, list[str](), 0
    world.open_kinds(kind for each in kinds for kind in each.reads)
    templates = [made.pod("template") for _ in range(3)]
    for step in range(100):
        row, choice = random.randrange(12), random.random()
        if choice < 0.25:
            world.set_nodes([(row, msgspec.json.encode(made.node(row)))])
        elif choice < 0.3:
            snapshot.remove_row(row)
        elif choice < 0.5 and snapshot.node_at(row) is not None:
            pod = made.pod(f"on-{step}", f"n{row}")
            pod["metadata"]["uid"] = f"on-{step}"
            placed.append(f"on-{step}")
            world.place_pods([(row, msgspec.json.encode(pod))])
        elif choice < 0.6 and placed:
            snapshot.remove_pod(placed.pop(random.randrange(len(placed))))
        else:
            text = dict(random.choice(templates))
            text["metadata"] = {**text["metadata"], "name": f"t{step}", "uid": f"t{step}"}
            names = tuple(name for name in snapshot.nodes().names if random.random() < 0.8)
            if not names:
                continue
            pod_ = decode_pod(msgspec.json.encode(text))
            run = await scored(world, cache, pod_, names=names)
            fresh = await scored(world, None, pod_, names=names)
            assert run.totals is not None
            assert fresh.totals is not None
            assert np.allclose(run.totals, fresh.totals)
            for one, other in zip(run.scores, fresh.scores, strict=True):
                assert one.plugin == other.plugin
                assert np.allclose(one.raw, other.raw)
            total += run.cached_nodes
    assert total > 0


def can_be_made(kind: type[ScorePlugin]) -> bool:
    """Whether a plugin needs no arguments."""
    try:
        kind.Args()
    except TypeError:
        return False
    return True
