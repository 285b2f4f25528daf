"""What the gateway does with calls and profiles that are out of the ordinary."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage import STATEFUL_SETS, Node, Pod, ScorePlugin
from tests.gateway.cluster.test_objects import SETS, stateful_set
from tests.gateway.scheduling.noting import NAMES, Asked, answered, decided, fill, noted, noting
from tests.manifests import node
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gateway, Options, plane, pod, policy_of
from tools.waiting import until


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with plane(tmp_path, nodes=("n1", "n2")) as process:
        yield process


async def test_pods_of_other_schedulers_pass_untouched(running: Gateway) -> None:
    other = pod(schedulerName="default-scheduler", nodeSelector={"no": "node"})
    answer = await running.filter(other, "n1", "new")
    assert answer["NodeNames"] == ["n1", "new"]
    assert await running.prioritize(other, "n1", "n2") == []
    assert running.sample("moorage_foreign_pods_total") == 2
    assert (await running.get("/decisions/default/p"))[0] == 404


async def test_one_plugin_can_be_asked_alone(running: Gateway) -> None:
    picky = pod(nodeSelector={"no": "node"}, nodeName="")
    body = {"Pod": picky, "NodeNames": ["n1", "n2"]}
    _, answer = await running.call("filter/NodePorts", body)
    assert answer["NodeNames"] == ["n1", "n2"]
    _, answer = await running.call("filter/NodeAffinity", body)
    assert answer["NodeNames"] == []
    _, scores = await running.call("prioritize/TaintToleration", body)
    assert scores == [{"Host": "n1", "Score": 100}, {"Host": "n2", "Score": 100}]
    _, answer = await running.call("filter/NoSuch", body)
    assert answer["Error"].startswith("filter service: plugin 'NoSuch' is not enabled here")
    assert "NodeAffinity" in answer["Error"], "it names those there are"


async def test_prioritize_collects_the_scores_of_the_filters_cycle(running: Gateway) -> None:
    await running.filter(pod(), "n1", "n2")
    scores = await running.prioritize(pod(), "n2", "n1")
    assert [score["Host"] for score in scores] == ["n2", "n1"]
    assert running.sample("moorage_cycle_duration_seconds_count", phase="score") == 1
    await running.filter(pod("other"), "n1", "n2")
    assert [s["Host"] for s in await running.prioritize(pod("other"), "n2")] == ["n2"]


async def test_a_pod_on_a_node_that_is_to_grow_keeps_all_candidates(running: Gateway) -> None:
    """kube-scheduler makes room for a deferred resize where the pod runs, not elsewhere."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "99"}}}
    grows = running.api.pod("g", schedulerName="moorage", nodeName="n1", containers=[container])
    victims = {"n1": {"Pods": [{"UID": "of-another-pod"}], "NumPDBViolations": 0}}
    _, answer = await running.call("preempt", {"Pod": grows, "NodeNameToMetaVictims": victims})
    assert answer == {"NodeNameToMetaVictims": victims}


async def test_a_pod_that_is_tried_again_waits_for_news_that_is_on_its_way(
    running: Gateway,
) -> None:
    picky = pod(nodeSelector={"disk": "ssd"})
    assert (await running.filter(picky, "n1", "n2"))["NodeNames"] == []
    loop = asyncio.get_running_loop()
    # As if kube-scheduler had heard of the label before the gateway.
    loop.call_later(0.02, lambda: running.api.label("/api/v1/nodes/n2", disk="ssd"))
    assert (await running.filter(picky, "n1", "n2"))["NodeNames"] == ["n2"]


async def test_scores_after_a_filter_call_are_those_without_one(
    running: Gateway,
) -> None:
    alone = await running.prioritize(pod("alone"), "n1", "n2")
    for name in ("first", "second", "third"):
        assert (await running.filter(pod(name), "n1", "n2"))["NodeNames"] == ["n1", "n2"]
        assert await running.prioritize(pod(name), "n1", "n2") == alone
    attempt = await decided(running, "third")
    assert attempt["score"]["nodes"] == 2
    assert running.sample("moorage_cycle_duration_seconds_count", phase="score") == 4


async def test_a_node_that_is_named_twice_is_judged_as_once(running: Gateway) -> None:
    answer = await running.filter(pod("twice"), "n1", "new", "n2", "n1", "new")
    assert answer["NodeNames"] == ["n1", "n2", "n1"]
    assert answer["FailedAndUnresolvableNodes"] == {"new": "node(s) not known to Moorage yet"}
    scores = await running.prioritize(pod("twice"), "n1", "n2", "n1")
    assert [score["Host"] for score in scores] == ["n1", "n2", "n1"]
    assert scores[0] == scores[2]


@pytest.mark.parametrize(
    "names", [("n1", "n2", "new"), ("n1", "n2", "n1"), ("new", "new", "new"), ("n4", "n2", "n3")]
)
async def test_nodes_that_a_call_names_for_once_are_judged_as_they_are(
    running: Gateway, names: tuple[str, ...]
) -> None:
    await _more_nodes(running, "n3", "n4")
    for number, usual in enumerate(itertools.permutations(("n1", "n2", "n3"))):
        await running.filter(pod(f"p{number}"), *usual)
    answer = await running.filter(pod("other"), *names)
    assert answer["NodeNames"] == [name for name in names if name != "new"]


async def _more_nodes(running: Gateway, *names: str) -> None:
    await running.node(*names)
    await until(lambda: running.sample("moorage_cache_size", type="nodes") == 2 + len(names))


PATH = "my_scheduler_extension/my_new_priorities/image_score"
ARTICLE = """\
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
scoreScale: 10
profiles:
- schedulerName: extended-scheduler
  plugins: {multiPoint: {enabled: [{name: ImageScore}]}}
"""


@pytest.mark.parametrize("path", [PATH, "prioritize/ImageScore"])
async def test_the_article_s_call_gets_the_article_s_scores(tmp_path: Path, path: str) -> None:
    nginx = [{"name": "nginx", "image": "nginx:1.7.9"}]
    items = [
        node("master-node", images=["k8s.gcr.io/pause:3.1"]),
        node("worker-node1", images=["nginx:1.15"]),
        node("worker-node2", images=["docker.io/library/nginx:1.7.9"]),
    ]
    body = {
        "Pod": pod(schedulerName="extended-scheduler", containers=nginx),
        "Nodes": {"metadata": {}, "items": items},
        "NodeNames": None,
    }
    alias: Options = {"extender_alias": (f"/{PATH}=prioritize/ImageScore",)}
    async with plane(tmp_path, policy=ARTICLE, **alias) as process:
        status, answer = await process.call(path, body)
    assert status == 200
    assert answer == [{"Host": "worker-node2", "Score": 1}]  # kube-scheduler adds 0 for the others


NOTHING = "{multiPoint: {disabled: [{name: '*'}]}}"


async def test_a_profile_without_plugins_lets_all_nodes_pass_without_an_opinion(
    tmp_path: Path,
) -> None:
    async with noted(tmp_path, text=policy_of(NOTHING)) as process:
        await fill(process)
        answer = await process.filter(pod("p"), *NAMES, "new")
        assert answer["NodeNames"] == [*NAMES, "new"]
        assert answer["FailedNodes"] is None
        assert await process.prioritize(pod("p"), *NAMES) == []
        victims: Object = {"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}
        body = {"Pod": pod("p"), "NodeNameToMetaVictims": victims}
        _, kept = await process.call("preempt", body)
        assert kept == {"NodeNameToMetaVictims": victims}
        assert answered(process) == (0, 0)
        decision = await decided(process, "p")
        assert decision["filter"] == {"nodes": 6, "feasible": 6, "seconds": 0.0}


@pytest.mark.parametrize(
    ("plugins", "counts"),
    [
        ("{multiPoint: {disabled: [{name: '*'}]}, filter: {enabled: [{name: Fits}]}}", (1, 0)),
        ("{multiPoint: {disabled: [{name: '*'}]}, score: {enabled: [{name: Likes}]}}", (0, 1)),
    ],
)
async def test_only_phases_with_plugins_ask_replicas(
    tmp_path: Path, plugins: str, counts: tuple[float, float]
) -> None:
    async with noted(tmp_path, *noting(Asked()), text=policy_of(plugins)) as process:
        await fill(process)
        answer = await process.filter(pod("p"), *NAMES)
        scores = await process.prioritize(pod("p"), *answer["NodeNames"])
        assert bool(scores) is bool(counts[1])
        assert answered(process) == counts


READS_SETS = policy_of(
    "{filter: {enabled: [{name: NodeAffinity}]}, score: {enabled: [{name: Reader}]}}"
)


class Reader(ScorePlugin):
    reads = (STATEFUL_SETS,)

    def score_node(self, pod: Pod, node: Node) -> float:
        return 0


async def test_changes_that_no_filter_sees_do_not_keep_a_pod_waiting(tmp_path: Path) -> None:
    async with plane(tmp_path, Reader, policy=READS_SETS, nodes=("n1",)) as process:
        picky = pod(nodeSelector={"disk": "ssd"})
        assert (await process.filter(picky, "n1"))["Error"] == ""
        process.api.create(SETS, stateful_set("db"))
        await until(lambda: process.sample("moorage_cache_size", type="statefulsets.apps") == 1)
        assert (await process.filter(picky, "n1"))["Error"] == ""
        asked = process.sample("moorage_cycle_duration_seconds_count", phase="filter")
        assert asked <= 3


async def test_a_state_that_never_rests_does_not_keep_a_pod_waiting(tmp_path: Path) -> None:
    process: Gateway

    async def newer_state(request: Any) -> bool:
        if request.HasField("cycle"):
            count = process.sample("moorage_cache_size", type="nodes") + 1
            process.api.node(f"new-{count:.0f}")
            await until(lambda: process.sample("moorage_cache_size", type="nodes") == count)
        return True

    options: Options = {"nodes": ("n1",), "filter_gates": (newer_state,), "http_timeout": 2.0}
    async with plane(tmp_path, **options) as process:
        for _ in range(2):
            picky = pod(nodeSelector={"disk": "ssd"})
            assert (await process.filter(picky, "n1"))["Error"] == ""
