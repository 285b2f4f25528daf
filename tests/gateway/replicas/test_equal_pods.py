"""Equal pods: replicas are asked about what has changed, and the answers are the same.

The nodes are those of `fill`: n1 to n3 fit, n4 is full, n5 is tainted.
"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.up.processes import free_ports
from moorage import FilterPlugin, Node, Nodes, Pod, Rejection, Scope, ScorePlugin
from tests.gateway.scheduling.noting import (
    FULL,
    NAMES,
    TAINTED,
    Asked,
    answered,
    decided,
    fill,
    liked,
    noted,
    noting,
    of_set,
    policy,
    told,
)
from tests.gateway.sharing import place, same
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gateway, Options, filter_service, replicas_are, scorer_service
from tools.waiting import until

CACHE: dict[str, Any] = {"cache_bytes": 1 << 23}
FITTING = ["n1", "n2", "n3"]
ALL = ([list(NAMES)], [FITTING])
NONE: tuple[list[list[str]], list[list[str]]] = ([], [])


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
async def process(tmp_path: Path, asked: Asked) -> AsyncIterator[Gateway]:
    async with noted(tmp_path, *noting(asked), **CACHE) as found:
        await fill(found)
        yield found


async def place_all(process: Gateway, *names: str) -> list[Object]:
    return [await place(process, of_set(name), NAMES) for name in names]


async def relabel(process: Gateway, name: str, liked: int) -> None:
    path = f"/api/v1/nodes/{name}"
    await told(process, "nodes", partial(process.api.label, path, liked=f"{liked}"))


async def test_the_third_is_answered_as_the_first_without_asking(
    process: Gateway, asked: Asked
) -> None:
    first, second = await place_all(process, "first", "second")
    assert first["filter"]["NodeNames"] == FITTING
    assert first["filter"]["FailedNodes"] == {"n4": FULL.reason}
    assert first["filter"]["FailedAndUnresolvableNodes"] == {"n5": TAINTED.reason}
    assert first["scores"] == {"n1": 17, "n2": 34, "n3": 51}
    same(first, second)
    before = await decided(process, "first")
    asked.taken()
    same(first, await place(process, of_set("third"), NAMES))
    same(first, await place(process, of_set("turned"), NAMES[::-1]))
    some = await place(process, of_set("some"), ("n2", "ghost", "n1", "n5"))
    assert some["scores"] == {"n1": 26, "n2": 51}, "the best of these nodes has the most"
    assert set(some["filter"]["FailedAndUnresolvableNodes"]) == {"n5", "ghost"}
    assert asked.taken() == NONE
    assert answered(process) == (2, 2)
    after = await decided(process, "third")
    for phase, count in (("filter", 5), ("score", 3)):
        assert after[phase].pop("cachedNodes") == count
        assert after[phase].pop("cachedFrom") == "default/second"
        assert after[phase].pop("seconds") == 0
        before[phase].pop("seconds")
        for plugin in before[phase]["plugins"] + after[phase]["plugins"]:
            plugin.pop("seconds")
        assert after[phase] == before[phase]


async def test_only_nodes_that_changed_are_asked_about(process: Gateway, asked: Asked) -> None:
    first, _ = await place_all(process, "first", "second")
    asked.taken()
    await relabel(process, "n1", 6)
    (third,) = await place_all(process, "third")
    assert asked.taken() == ([["n1"]], [["n1"]])
    assert third["filter"] == first["filter"]
    assert third["scores"] == {"n1": 51, "n2": 17, "n3": 26}, "the maximum is another"
    await told(process, "pods", lambda: process.api.pod("load", nodeName="n2"))
    (fourth,) = await place_all(process, "fourth")
    assert asked.taken() == ([["n2"]], [["n2"]])
    assert fourth["scores"] == {"n1": 51, "n2": 26, "n3": 26}
    decision = await decided(process, "fourth")
    for phase, count in (("filter", 4), ("score", 2)):
        assert decision[phase]["cachedNodes"] == count
        assert decision[phase]["cachedFrom"] == "default/third"


async def test_stale_nodes_of_other_samples_are_asked_about_along(
    process: Gateway, asked: Asked
) -> None:
    await place_all(process, "first", "second")
    asked.taken()
    for number, name in enumerate(FITTING, start=5):
        await relabel(process, name, number)
    await place(process, of_set("elsewhere"), ("n4", "n5"))
    assert asked.taken() == NONE, "not for themselves"
    await place(process, of_set("one"), ("n1", "n4"))
    assert asked.taken()[0] == [FITTING]
    placed = await place(process, of_set("others"), ("n2", "n3"))
    assert placed["scores"] == {"n2": 43, "n3": 51}
    assert asked.taken()[0] == []


@pytest.mark.parametrize(
    "other",
    [
        {"labels": {"app": "web", "tier": "db"}},
        {"annotations": {"example.com/zone": "a"}},
        {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-2", "uid": "2"}]},
    ],
)
async def test_a_pod_that_differs_is_asked_about(
    process: Gateway, asked: Asked, other: Object
) -> None:
    await place_all(process, "first", "second")
    asked.taken()
    await place(process, of_set("other", **other), NAMES)
    assert asked.taken() == ALL


@pytest.mark.parametrize("fields", [(), ("metadata.labels",)])
async def test_pods_are_equal_if_the_fields_are_that_plugins_read(
    tmp_path: Path, asked: Asked, fields: tuple[str, ...]
) -> None:
    declared = {"depends_on": Scope.NODE, "pod_fields": fields}
    kinds = [type(kind.__name__, (kind,), declared) for kind in noting(asked)]
    async with noted(tmp_path, *kinds, text=policy(scores="{name: Likes}"), **CACHE) as process:
        await fill(process)
        for number in range(4):
            labels = {"apps.kubernetes.io/pod-index": f"{number}"}
            await place(process, of_set(f"p{number}", labels=labels), NAMES)
        count = 4 if fields else 2
        assert answered(process) == (count, count)


@pytest.mark.parametrize(
    ("scope", "after_bind", "after_label"),
    [
        (Scope.NODE, 1, 1),
        (Scope.MANIFESTS, 1, 5),
        (Scope.CLUSTER, 5, 5),
        (Scope.ANYTHING, 5, 5),
    ],
)
async def test_a_scope_says_which_nodes_a_change_concerns(
    tmp_path: Path, asked: Asked, scope: Scope, after_bind: int, after_label: int
) -> None:
    fits, likes = noting(asked)
    wider = type("Fits", (fits,), {"depends_on": scope})
    async with noted(tmp_path, wider, likes, **CACHE) as process:
        await fill(process)
        await place_all(process, "first", "second")
        asked.taken()
        await place_all(process, "third")
        unchanged, _ = asked.taken()
        assert bool(unchanged) == (scope is Scope.ANYTHING)
        await told(process, "pods", lambda: process.api.pod("load", nodeName="n2"))
        await place_all(process, "fourth")
        assert [len(names) for names in asked.taken()[0]] == [after_bind]
        await relabel(process, "n1", 7)
        await place_all(process, "fifth")
        assert [len(names) for names in asked.taken()[0]] == [after_label]


async def test_a_pod_with_a_place_is_asked_about(process: Gateway, asked: Asked) -> None:
    await place_all(process, "first", "second")
    made = process.api.pod("bound", nodeName="n1")
    await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
    asked.taken()
    placed = await place(process, of_set("bound", uid=made["metadata"]["uid"]), NAMES)
    assert asked.taken() == ALL
    assert placed["scores"]["n1"] == 17, "it does not count itself"


async def test_single_plugins_whole_nodes_and_preemption_are_asked_about(
    process: Gateway, asked: Asked
) -> None:
    await place_all(process, "first", "second")
    asked.taken()
    bodies: list[tuple[str, Object]] = [
        ("filter/Fits", {"NodeNames": NAMES}),
        ("filter", {"Nodes": {"items": [liked(name) for name in NAMES]}}),
        ("preempt", {"NodeNameToMetaVictims": {n: {"Pods": [{"UID": "v"}]} for n in NAMES}}),
    ]
    for verb, body in bodies:
        for name in ("third", "fourth"):
            status, _ = await process.call(verb, {"Pod": of_set(name), **body})
            assert status == 200
            assert asked.taken()[0] == [list(NAMES)], verb


class Reserving(FilterPlugin):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None

    def wants_claim(self, pod: Pod) -> bool:
        return False


class Keeping(FilterPlugin):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.cycle_state.write("name", pod.name)
        return None


class Moody(FilterPlugin):
    depends_on = Scope.NODE
    broken: set[str]

    def filter(self, pod: Pod, nodes: Nodes) -> Any:
        if self.broken & set(nodes.names):
            raise ValueError("no data")
        return nodes.verdicts()


@pytest.mark.parametrize("plugin", [Reserving, Keeping])
async def test_filters_that_may_want_a_claim_or_keep_values_for_the_bind_are_not_cached(
    tmp_path: Path, asked: Asked, plugin: type[FilterPlugin]
) -> None:
    text = policy(f"{{name: Fits}}, {{name: {plugin.__name__}}}")
    async with noted(tmp_path, *noting(asked), plugin, text=text, **CACHE) as process:
        await fill(process)
        await place_all(process, "first", "second", "third")
        assert [len(calls) for calls in asked.taken()] == [3, 2]


@pytest.mark.parametrize("failure_policy", ["Ignore", "Abort"])
async def test_failures_are_not_cached_nor_do_those_of_other_samples_fail_a_call(
    tmp_path: Path, asked: Asked, failure_policy: str
) -> None:
    Moody.broken = {"n1"}
    config = f"{{name: Moody, failurePolicy: {failure_policy}}}"
    text = policy("{name: Fits}, {name: Moody}", config=config)
    async with noted(tmp_path, *noting(asked), Moody, text=text, **CACHE) as process:
        await fill(process)
        for name in ("first", "second", "third"):
            await process.call("filter", {"Pod": of_set(name), "NodeNames": NAMES})
        assert len(asked.taken()[0]) == 3
        Moody.broken = set()
        await place_all(process, "fourth", "fifth")
        assert len(asked.taken()[0]) == 1
        Moody.broken = {"n1"}
        for name in ("n1", "n2"):
            await relabel(process, name, 9)
        answer = await process.filter(of_set("sixth"), *NAMES[1:])
        assert (answer["Error"], answer["NodeNames"]) == ("", ["n2", "n3"])
        assert asked.taken()[0] == [["n1", "n2"], list(NAMES[1:])]


async def test_another_policy_empties_the_cache(tmp_path: Path, asked: Asked) -> None:
    async with noted(tmp_path, *noting(asked), config_reload_interval=0.02, **CACHE) as process:
        await fill(process)
        before, *_ = await place_all(process, "first", "second", "third")
        asked.taken()

        async def change(text: str, changes: int) -> None:
            (tmp_path / "policy.yaml").write_text(text)
            await until(
                lambda: process.sample("moorage_policy_reloads_total", outcome="ok") == changes
            )

        # What the plugins depend on stays the same here.
        await change(policy(config="{name: Likes, timeBudget: 2s}"), 1)
        same(before, *await place_all(process, "fourth"))
        assert asked.taken() == ALL
        await change(policy(scores="{name: Likes, weight: 3}, {name: Equal}"), 2)
        (fifth,) = await place_all(process, "fifth")
        assert fifth["scores"] == {"n1": 25, "n2": 50, "n3": 75}
        assert asked.taken() == ALL


@pytest.mark.parametrize("service", ["filter", "scorer"])
async def test_a_process_that_joins_empties_the_cache_and_one_that_goes_leaves_it(
    tmp_path: Path, asked: Asked, service: str
) -> None:
    kinds: Any = noting(asked)
    (port,) = free_ports(1)
    also = {"filters" if service == "filter" else "scorer": f"127.0.0.1:{port}"}
    async with noted(tmp_path, *kinds, also=also, **CACHE) as process:
        await fill(process)
        first, _ = await place_all(process, "first", "second")
        asked.taken()
        another = filter_service if service == "filter" else scorer_service
        async with another(kinds[service == "scorer"], port=port):
            await replicas_are(process, service, 2)
            same(first, *await place_all(process, "third"))
            assert asked.taken() == ALL
            await place_all(process, "fourth")
            assert asked.taken() == NONE
        await replicas_are(process, service, 1)
        same(first, *await place_all(process, "fifth"))
        assert asked.taken() == NONE, "the one that is left has the same plugins"


async def test_a_session_that_breaks_leaves_the_cache(tmp_path: Path, asked: Asked) -> None:
    cut: set[str] = set()

    async def gate(name: str, _: Any) -> bool:
        if name not in cut:
            return True
        cut.discard(name)
        return False

    gates: Options = {f"{name}_gates": (partial(gate, name),) for name in ("filter", "scorer")}
    async with noted(tmp_path, *noting(asked), **gates, delta_interval=0.02, **CACHE) as process:
        await fill(process)
        first, _ = await place_all(process, "first", "second")
        asked.taken()
        cut |= {"filter", "scorer"}
        await relabel(process, "n4", 9)
        opened = partial(process.sample, "moorage_sessions_opened_total")
        await until(lambda: opened(service="filter") == opened(service="scorer") == 2)
        same(first, *await place_all(process, "third"))
        assert asked.taken() == ([["n4"]], [])


async def test_verdicts_of_two_versions_of_a_plugin_are_never_joined(
    tmp_path: Path, asked: Asked
) -> None:
    fits, likes = noting(asked)
    other = Rejection("node is not for this version")

    def reject(self: FilterPlugin, pod: Pod, nodes: Nodes) -> Any:
        return nodes.verdicts().reject([True] * len(nodes), other)

    newer: Any = type("Fits", (fits,), {"filter": reject, "depends_on": Scope.NODE})
    (port,) = free_ports(1)
    also = {"filters": f"127.0.0.1:{port}"}
    async with noted(tmp_path, fits, likes, also=also, **CACHE) as process:
        await fill(process)
        async with filter_service(newer, port=port):
            await replicas_are(process, "filter", 2)
            seen = set()
            for number in range(8):
                await relabel(process, "n1", number)
                (placed,) = await place_all(process, f"p{number}")
                count = len(placed["filter"]["FailedAndUnresolvableNodes"])
                assert count in (1, 5), "all by one version: n5 alone, or all"
                seen.add(count)
            assert seen == {1, 5}
        await replicas_are(process, "filter", 1)
        (last,) = await place_all(process, "last")
        assert last["filter"]["NodeNames"] == FITTING, "nobody has the other version any more"


class Verbose(FilterPlugin):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection(f"{node.name} {'x' * 900}")


@pytest.mark.parametrize(
    ("most", "plugin", "annotation"),
    [(10_000, "Fits", 0), (40_000, "Fits", 20_000), (12_000, "Verbose", 0)],
    ids=["numbers", "keys", "reasons"],
)
async def test_pods_that_came_longest_ago_are_forgotten_when_the_cache_is_full(
    tmp_path: Path, asked: Asked, most: int, plugin: str, annotation: int
) -> None:
    text = policy(f"{{name: {plugin}}}, {{name: Fits}}" if plugin != "Fits" else "{name: Fits}")
    kinds = (*noting(asked), Verbose)
    async with noted(tmp_path, *kinds, text=text, cache_bytes=most) as process:
        await fill(process)

        async def place_two(kind: str) -> float:
            before = answered(process)[0]
            for name in ("first", "second"):
                notes = {"kind": kind, "size": "x" * annotation}
                await place(process, of_set(f"{kind}-{name}", annotations=notes), NAMES)
            return answered(process)[0] - before

        assert [await place_two(kind) for kind in ("a", "b", "b", "a")] == [2, 2, 0, 1]


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


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        (policy("{name: Fits}, {name: ByName}"), "filter"),
        (policy(scores="{name: LikesNames}"), "score"),
    ],
)
async def test_verifying_finds_a_plugin_that_declares_too_little(
    tmp_path: Path, asked: Asked, text: str, phase: str
) -> None:
    kinds = (*noting(asked), ByName, LikesNames)
    async with noted(tmp_path, *kinds, text=text, cache_verify_share=1, **CACHE) as process:
        await fill(process)
        name = "moorage_cache_differences_total"
        await place_all(process, "first", "second", "third")
        assert process.sample(name, phase=phase) == 0
        (odd,) = await place_all(process, "odd")
        assert process.sample(name, phase=phase) == 1
        if phase == "filter":
            assert odd["filter"]["NodeNames"] == [], "the answer is the replicas'"
        else:
            assert odd["scores"]["n1"] == 100, "the answer is the replicas'"
