"""Several replicas share a cycle, and say the same as one."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest

from moorage import FilterPlugin, Node, Nodes, Pod, Rejection, ScorePlugin
from services.filter.plugins import BUILT_INS as BUILT_IN_FILTERS
from services.scorer.plugins import BUILT_INS
from tests.conftest import EXAMPLES
from tests.fake_prometheus import fake_prometheus
from tests.gateway.random_clusters import Object, RandomCluster
from tests.gateway.sharing import NAMES, NODES, ByNumber, place, same, sharing
from tests.manifests import node
from tools.inprocess.gateway import Gateway, Options, is_open, pod, policy_of
from tools.waiting import until

ARGS = {
    "CongestionFactor": "{onMissing: neutral}",
    "LoadVariationRiskBalancing": "{inFlight: 'off'}",
    "LowRiskOverCommitment": "{inFlight: 'off'}",
    "NodeMetadata": "{metadataKey: price, metadataSource: Annotation}",
    "SafeBalance": "{inFlight: 'off'}",
    "SafeOverload": "{inFlight: 'off'}",
    "TargetLoadPacking": "{inFlight: 'off'}",
}
FILTERS = ("NodeGroup", "PodTopologySpread", "InterPodAffinity", "VolumeRestrictions")


def everything(prometheus: str) -> str:
    """Write a policy with all built-in score plugins, and filters that look at many nodes."""
    args = ARGS | {"NetworkTraffic": f"{{prometheusAddress: '{prometheus}', inFlight: 'off'}}"}
    # On a busy machine the budget may pass while the process waits for its turn.
    names = dict.fromkeys(plugin.name for plugin in (*BUILT_INS, *BUILT_IN_FILTERS))
    configs = "".join(
        f"  - {{name: {name}, timeBudget: 30s, args: {args.get(name, '{}')}}}\n" for name in names
    )
    scores = ", ".join(f"{{name: {plugin.name}, weight: 2}}" for plugin in BUILT_INS)
    filters = ", ".join(f"{{name: {name}}}" for name in FILTERS)
    return (
        "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nscoreScale: 100\n"
        "profiles:\n"
        "- schedulerName: moorage\n"
        f"  plugins:\n    score:\n      disabled: [{{name: '*'}}]\n      enabled: [{scores}]\n"
        f"    filter: {{enabled: [{filters}]}}\n"
        f"  pluginConfig:\n{configs}"
        "- schedulerName: probe\n"
        "  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NetworkTraffic}]}}\n"
        "  pluginConfig:\n"
        f"  - {{name: NetworkTraffic, args: {args['NetworkTraffic']}}}\n"
    )


@pytest.mark.parametrize("seed", range(1 if EXAMPLES < 100 else 3))
async def test_one_two_and_three_replicas_say_the_same(tmp_path: Path, seed: int) -> None:
    made = RandomCluster(Random(seed))
    nodes = [made.node(i) for i in range(NODES)]
    pods = [made.pod(f"on-{i}", f"n{made.random.randrange(NODES)}") for i in range(2 * NODES)]
    async with AsyncExitStack() as stack:
        prometheus = await stack.enter_async_context(fake_prometheus())
        prometheus.measures({"traffic": {name: made.random.random() * 1e9 for name in NAMES[2:]}})
        policy = everything(prometheus.address)
        gateways = []
        for count in (1, 2, 3):
            running = await stack.enter_async_context(
                sharing(tmp_path, name=str(count), count=count, policy=policy)
            )
            gateways.append(running)
            await fill(running, nodes, pods)
            await measured(running)
        scored = set()
        for number in range(8):
            obj = made.pod(f"new-{number}")
            names = made.random.sample(NAMES, made.random.randint(20, NODES))
            one, two, three = [await place(running, obj, names) for running in gateways]
            same(one, two)
            same(one, three)
            assert (one["shards"][0], two["shards"][0], three["shards"][0]) == (1, 2, 3)
            assert two["shards"][1:] in ([], [2])
            scored |= {p["plugin"] for each in one["top"].values() for p in each["plugins"]}
            assert not any("failure" in plugin for plugin in one["plugins"])
        assert scored == {plugin.name for plugin in BUILT_INS}


async def fill(running: Gateway, nodes: Sequence[Object], pods: Sequence[Object]) -> None:
    for made in nodes:
        running.api.create("/api/v1/nodes", made)
    for each in pods:
        running.api.create("/api/v1/namespaces/default/pods", each)
    await until(lambda: running.sample("moorage_cache_size", type="pods") == len(pods))


async def measured(running: Gateway) -> None:
    """Wait until the replicas have asked Prometheus."""

    async def all_scored() -> bool:
        decision = await place(running, pod("probe", schedulerName="probe"))
        return bool(decision["top"]) and not any("failure" in each for each in decision["plugins"])

    await until(all_scored)


class FailsOnOne(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        if node.name == "n0":
            raise ValueError("no data")
        return 100.0 if node.name == "n1" else 0.0


async def test_a_score_plugin_that_fails_on_one_node_is_left_out_everywhere(tmp_path: Path) -> None:
    policy = policy_of(
        "{score: {disabled: [{name: '*'}], enabled: [{name: ByNumber}, {name: FailsOnOne}]}}",
    )
    decisions = []
    for count in (1, 2):
        options: Options = {"name": str(count), "policy": policy, "nodes": NAMES, "count": count}
        one_filter: Options = {"filter_gates": (is_open,)}
        async with sharing(tmp_path, ByNumber, FailsOnOne, **options, **one_filter) as running:
            decisions.append(await place(running, pod()))
    one, two = decisions
    same(one, two)
    assert two["shards"] == [1, 2]
    assert any("no data" in plugin.get("failure", "") for plugin in two["plugins"])
    assert max(two["scores"], key=two["scores"].__getitem__) == NAMES[-1]


class RejectsSome(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if node.name == "n0":
            raise ValueError("no data")
        return Rejection("is one of some") if node.name in ("n1", "n39") else None


class RejectsMore(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("is one of more") if node.name in ("n39", "n20") else None


async def test_a_filter_that_fails_on_one_node_is_left_out_everywhere(tmp_path: Path) -> None:
    policy = policy_of(
        "{filter: {enabled: [{name: RejectsSome}, {name: RejectsMore}]}}",
        "{name: RejectsSome, failurePolicy: Ignore}",
    )
    options: Options = {"policy": policy, "nodes": NAMES, "count": 2}
    async with sharing(tmp_path, RejectsSome, RejectsMore, **options) as running:
        answer = await running.filter(pod(), *NAMES)
        assert answer["FailedAndUnresolvableNodes"] == {
            "n39": "is one of more",
            "n20": "is one of more",
        }
        answer = await running.filter(pod("q"), *NAMES[1:])
        assert answer["FailedAndUnresolvableNodes"] == {
            "n1": "is one of some",
            "n20": "is one of more",
            "n39": "is one of some",
        }
        assert running.sample("moorage_scattered_cycles_total", phase="filter") == 1


async def test_nodes_that_nobody_knows_are_in_no_shard(tmp_path: Path) -> None:
    async with sharing(tmp_path, nodes=("n1", "n2", "n3"), count=2) as running:
        answer = await running.filter(pod(), "n1", "ghost", "n2", "phantom", "n3")
        assert answer["NodeNames"] == ["n1", "n2", "n3"]
        assert set(answer["FailedAndUnresolvableNodes"]) == {"ghost", "phantom"}
        assert len(await running.prioritize(pod(), "n1", "n2", "n3")) == 3


async def test_whole_nodes_in_the_call_are_seen_by_all_shards(tmp_path: Path) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    obj = pod(topologySpreadConstraints=[spread])
    obj["metadata"]["labels"] = {"app": "web"}

    policy = policy_of("{filter: {enabled: [{name: PodTopologySpread}]}}")
    async with sharing(tmp_path, policy=policy, count=2) as running:
        running.api.create("/api/v1/nodes", node("a", zone="x"))
        running.api.pod("web", labels={"app": "web"}, nodeName="a")
        await until(lambda: running.sample("moorage_cache_size", type="pods") == 1)
        # Only the caller knows of zone y, in which there are no pods yet: so x has one too many.
        items = [node("a", zone="x"), node("b", zone="y")]
        _, answer = await running.call("filter", {"Pod": obj, "Nodes": {"items": items}})
        assert [n["metadata"]["name"] for n in answer["Nodes"]["items"]] == ["b"]
        assert running.sample("moorage_scattered_cycles_total", phase="filter") == 1


class Scores(ScorePlugin):
    def score(self, pod: Pod, nodes: Nodes) -> list[float]:
        time.sleep(0.2)
        return [float(row) for row in nodes.rows]


class Prepares(Scores):
    """Takes even longer before them, which another replica would have to do as well."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> None:
        await asyncio.sleep(0.4)


@pytest.mark.parametrize(("plugin", "shards"), [(Scores, 2), (Prepares, 1)])
async def test_only_what_fewer_nodes_make_faster_is_scattered(
    tmp_path: Path, plugin: type[ScorePlugin], shards: int
) -> None:
    name = plugin.__name__
    policy = policy_of(
        f"{{score: {{disabled: [{{name: '*'}}], enabled: [{{name: {name}}}]}}}}",
        f"{{name: {name}, timeBudget: 30s}}",
    )
    options: Options = {"policy": policy, "nodes": NAMES, "min_shard_time": 0.02}
    options |= {"scorer_gates": (is_open, is_open)}
    async with sharing(tmp_path, plugin, **options) as running:
        assert (await place(running, pod("first")))["shards"] == [1, 1]
        assert (await place(running, pod("second")))["shards"] == [1, shards]
