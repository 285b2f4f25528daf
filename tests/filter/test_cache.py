"""The cache changes no answer, and asks plugins only about what has changed."""

import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from moorage import (
    SKIP,
    FilterPlugin,
    Node,
    Nodes,
    ObjectKind,
    Pod,
    Preparation,
    Rejection,
    Scope,
)
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.models import ObjectName, decode_pod, encode
from moorage.testing import make_node, make_pod
from moorage_host.plugins import CycleInput, Replica
from moorage_host.plugins.cache import MEASURE_AFTER, WORTH_SECONDS, CacheLimits
from moorage_host.plugins.host import Policy
from services.filter.cache import MOST_REASONS, FilterCache
from services.filter.engine import FilterRun, run_filters
from services.filter.plugins import BUILT_INS
from tests.filter.sessions import cycle, filtering, full_state
from tests.gateway.random_clusters import RandomCluster

THINGS = ObjectKind("example.com/v1", "things")
EVERYTHING = CacheLimits(worth_seconds=0.0)


class Asked(FilterPlugin, abstract=True):
    """Remembers which nodes it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.asked.append(node.name)
        full = node.requested.get("cpu", 0) >= 2000 or "full" in node.labels
        return Rejection("full") if full else None


class ReadsNode(Asked):
    depends_on = Scope.NODE


class ReadsManifests(Asked):
    depends_on = Scope.MANIFESTS
    reads = (THINGS,)


class ReadsCluster(Asked):
    depends_on = Scope.CLUSTER


class ReadsAnything(Asked):
    pass


class ReadsImages(Asked):
    depends_on = Scope.NODE
    pod_fields = ("metadata.labels", "spec.containers[*].image")


class Claims(Asked):
    depends_on = Scope.NODE

    def wants_claim(self, pod: Pod) -> bool:
        return True


class Keeps(Asked):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.cycle_state.write("device", 1, node=node)
        return super().filter_node(pod, node)


class Fails(Asked):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        super().filter_node(pod, node)
        raise ValueError("no")


class Narrows(Asked):
    depends_on = Scope.NODE

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return Preparation(nodes=nodes[:1])


class SkipsSome(Asked):
    depends_on = Scope.NODE
    pod_fields = ("metadata.labels",)

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return SKIP if "skip" in pod.labels else None


class Lies(Asked):
    """Says that it depends on the node alone."""

    depends_on = Scope.NODE
    mood = ""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        super().filter_node(pod, node)
        return Rejection(self.mood) if self.mood else None


@dataclass
class World:
    """A replica with a cache, and four nodes."""

    replica: Replica
    cache: FilterCache
    differences: list[tuple[str, str, str]]
    supervisor: Supervisor = field(default_factory=Supervisor)
    pods: int = 0

    @property
    def plugin(self) -> Any:
        (plugin,) = [enabled.plugin for enabled in self.replica.policy.plugins]
        return plugin

    async def ask(self, pod: Pod | None = None, **changes: Any) -> FilterRun:
        """Filter the nodes for a pod that is equal to all others, unless it is given."""
        self.pods += 1
        work = CycleInput(
            profile="p", pod=pod or make_pod(f"p{self.pods}", uid=f"p{self.pods}"), **changes
        )
        self.supervisor = Supervisor()
        _, run = await self.replica.run(work, run_filters, self.supervisor, self.cache)
        return run

    async def asked(self, pod: Pod | None = None, **changes: Any) -> list[str]:
        """Return about which nodes the plugin was asked for a pod."""
        self.plugin.asked.clear()
        await self.ask(pod, **changes)
        return list(self.plugin.asked)

    def place(self, row: int, name: str) -> None:
        self.replica.place_pods([(row, encode(make_pod(name, uid=name, requests={"cpu": "2"})))])


def enabled(plugin: FilterPlugin, **changes: Any) -> EnabledPlugin:
    return EnabledPlugin(plugin=plugin, time_budget=30, **changes)


def world(*plugins: EnabledPlugin, limits: CacheLimits = EVERYTHING, nodes: int = 4) -> World:
    replica = Replica()
    replica.policy = Policy(profiles={"p": Profile(name="p", plugins=plugins)})
    replica.open_kinds([THINGS])
    replica.set_nodes((row, encode(make_node(f"n{row}"))) for row in range(nodes))
    replica.generation = 1
    found: list[tuple[str, str, str]] = []
    cache = FilterCache(limits, lambda *what: found.append(what))
    return World(replica, cache, found)


async def filled(plugin: type[Asked], **changes: Any) -> World:
    """Return a world with the answers for two equal pods, as most pods have no equal."""
    made = world(enabled(plugin()), **changes)
    assert await made.asked() == await made.asked() == ["n0", "n1", "n2", "n3"]
    return made


@pytest.mark.parametrize("plugin", [ReadsNode, ReadsManifests, ReadsCluster])
async def test_plugins_are_not_asked_again_about_equal_pods(plugin: type[Asked]) -> None:
    made = await filled(plugin)
    made.place(1, "other")
    await made.ask()
    made.plugin.asked.clear()
    run = await made.ask()
    assert made.plugin.asked == []
    assert (run.cached_nodes, run.cached_from) == (4, "default/p3")
    assert run.codes.tolist() == [0, 1, 0, 0]
    assert [(each.plugin, each.rejection.reason) for each in run.reasons] == [(plugin.name, "full")]
    assert [(each.plugin, each.skipped, each.failure) for each in run.plugins] == [
        (plugin.name, False, "")
    ]


async def test_nothing_is_cached_of_plugins_that_depend_on_anything() -> None:
    made = await filled(ReadsAnything)
    assert len(await made.asked()) == 4


@pytest.mark.parametrize(
    ("plugin", "after_a_pod", "after_a_node", "after_an_object"),
    [(ReadsNode, 1, 1, 0), (ReadsManifests, 1, 4, 4), (ReadsCluster, 4, 4, 4)],
)
async def test_plugins_are_asked_about_what_their_scope_says_after_a_change(
    plugin: type[Asked], after_a_pod: int, after_a_node: int, after_an_object: int
) -> None:
    made = await filled(plugin)
    made.place(2, "other")
    assert len(await made.asked()) == after_a_pod
    assert await made.asked() == []
    made.replica.snapshot.remove_pod("other")
    assert len(await made.asked()) == after_a_pod
    made.replica.set_nodes([(3, encode(make_node("n3", labels={"full": ""})))])
    assert len(await made.asked()) == after_a_node
    made.replica.put_objects([(ObjectName(THINGS, "", "thing"), b"{}")])
    assert len(await made.asked()) == after_an_object
    assert (await made.ask()).codes.tolist() == [0, 0, 0, 1]


async def test_a_part_of_the_nodes_is_asked_about_where_others_are_cached() -> None:
    made = await filled(ReadsNode)
    made.replica.set_nodes([(4, encode(make_node("n4")))])
    assert await made.asked(names=("n1", "n4")) == ["n4"]
    made.replica.snapshot.remove_row(1)
    made.replica.set_nodes([(1, encode(make_node("other")))])
    assert await made.asked() == ["other"]


@pytest.mark.parametrize(
    "changes",
    [
        {"plugin": "ReadsNode"},
        {"overrides": {0: make_node("n0")}},
        {"excluded_pods": ("on-n0",)},
        {"pod": make_pod("on-n0", uid="on-n0", requests={"cpu": "2"})},
    ],
    ids=["a single plugin", "given nodes", "excluded pods", "a pod with a place"],
)
async def test_such_cycles_are_not_answered_from_the_cache(changes: dict[str, Any]) -> None:
    made = await filled(ReadsNode)
    made.place(0, "on-n0")
    assert len(await made.asked(**changes)) == 4
    assert len(await made.asked(**changes)) == 4


@pytest.mark.parametrize("plugin", [Claims, Keeps, Fails])
async def test_such_answers_are_not_cached(plugin: type[Asked]) -> None:
    made = world(enabled(plugin(), aborts=False))
    assert {len(await made.asked()) for _ in range(4)} <= {1, 4}
    run = await made.ask()
    assert run.cached_nodes == 0
    assert run.claimants == (["Claims"] if plugin is Claims else [])
    assert bool(run.plugins[0].kept) is (plugin is Keeps)
    assert bool(run.plugins[0].failure) is (plugin is Fails)
    assert len(run.plugins) == 1


async def test_narrowed_nodes_are_not_cached() -> None:
    made = world(enabled(Narrows()))
    for _ in range(4):
        assert await made.asked() == ["n0"]


async def test_a_skipped_pod_is_not_prepared_again() -> None:
    made = world(enabled(SkipsSome()))
    for _ in range(2):
        await made.ask(make_pod("a", uid="a", labels={"skip": ""}))
    run = await made.ask(make_pod("a", uid="a", labels={"skip": ""}))
    assert run.cached_nodes == 4
    assert [each.skipped for each in run.plugins] == [True]


async def test_pods_are_equal_that_differ_where_no_plugin_reads() -> None:
    made = world(enabled(ReadsImages()))

    def pod(name: str, image: str = "a", cpu: str = "1", team: str = "x") -> Pod:
        return make_pod(name, uid=name, image=image, requests={"cpu": cpu}, labels={"team": team})

    for name in ("a", "b"):
        await made.ask(pod(name))
    assert await made.asked(pod("c", cpu="2")) == []
    assert len(await made.asked(pod("d", image="b"))) == 4
    assert len(await made.asked(pod("e", team="y"))) == 4
    assert await made.asked(pod("f")) == []


async def test_another_policy_or_another_snapshot_begins_anew() -> None:
    made = await filled(ReadsNode)
    made.replica.policy = Policy(profiles=dict(made.replica.policy.profiles))
    assert len(await made.asked()) == 4
    assert await made.asked() == []
    nodes = [(row, encode(make_node(f"n{row}"))) for row in range(4)]
    made.replica.clear()
    made.replica.set_nodes(nodes)
    assert len(await made.asked()) == 4


async def test_the_cache_is_bounded_in_pods_and_in_bytes() -> None:
    for limits in (
        CacheLimits(pods=2, worth_seconds=0),
        CacheLimits(bytes=2 * 64 * (2 + 8), worth_seconds=0),
    ):
        made = world(enabled(ReadsNode()), limits=limits)
        pods = [make_pod(f"p{n}", uid=f"p{n}", labels={"n": str(n)}) for n in range(3)]
        for pod in (*pods, *pods):
            await made.ask(pod)
        assert await made.asked(pods[2]) == await made.asked(pods[1]) == []
        assert len(await made.asked(pods[0])) == 4


async def test_the_cache_takes_no_part_where_plugins_are_quicker_than_it_is() -> None:
    made = world(enabled(ReadsNode()), limits=CacheLimits(worth_seconds=60))
    for _ in range(4):
        assert len(await made.asked()) == 4


async def test_a_plugin_that_depends_on_more_than_it_says_is_found() -> None:
    made = await filled(Lies, limits=CacheLimits(verify_share=1.0, worth_seconds=0))
    made.plugin.mood = "bad"
    run = await made.ask()
    assert run.codes.tolist() == [1, 1, 1, 1]
    assert run.cached_nodes == 0
    difference = "4 verdicts, the first: cached feasible, now Lies: bad"
    assert made.differences == [("p", "default/p3", difference)]


async def test_without_a_share_to_verify_nobody_finds_it() -> None:
    made = await filled(Lies)
    made.plugin.mood = "bad"
    assert (await made.ask()).codes.tolist() == [0, 0, 0, 0]


async def test_plugins_that_confirm_the_cache_are_not_reported() -> None:
    made = await filled(ReadsNode, limits=CacheLimits(verify_share=1.0, worth_seconds=0))
    for _ in range(3):
        assert len(await made.asked()) == 4
    assert made.differences == []


class ManyReasons(Asked):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        super().filter_node(pod, node)
        return Rejection(node.name)


async def test_answers_with_too_many_reasons_are_not_cached() -> None:
    made = world(enabled(ManyReasons()), nodes=MOST_REASONS + 1)
    for _ in range(3):
        assert len(await made.asked()) == MOST_REASONS + 1


async def test_only_reasons_in_use_are_reported() -> None:
    made = world(enabled(ManyReasons()))
    for _ in range(2):
        await made.ask()
    run = await made.ask(names=("n3", "n1"))
    assert [each.rejection.reason for each in run.reasons] == ["n1", "n3"]
    assert run.codes.tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(6))
async def test_the_cache_changes_no_verdict(seed: int) -> None:
    widest = Scope.CLUSTER if seed % 2 else Scope.MANIFESTS
    random, made = Random(seed), RandomCluster(Random(seed))
    running = [enabled(kind()) for kind in BUILT_INS if kind.depends_on <= widest]
    running = [each for each in running if not each.may_claim]
    plugins = [type(each.plugin) for each in running]
    cached = world(*running)
    cached.replica.open_kinds(kind for each in plugins for kind in each.reads)
    snapshot, names = cached.replica.snapshot, list[str]()
    templates = [made.pod("template") for _ in range(3)]
    total = 0
    for step in range(120):
        row, choice = random.randrange(12), random.random()
        if choice < 0.25:
            cached.replica.set_nodes([(row, msgspec.json.encode(made.node(row)))])
        elif choice < 0.3:
            snapshot.remove_row(row)
        elif choice < 0.5 and snapshot.node_at(row) is not None:
            pod = made.pod(f"on-{step}", f"n{row}")
            pod["metadata"]["uid"] = f"on-{step}"
            names.append(f"on-{step}")
            cached.replica.place_pods([(row, msgspec.json.encode(pod))])
        elif choice < 0.6 and names:
            snapshot.remove_pod(names.pop(random.randrange(len(names))))
        else:
            text = dict(random.choice(templates))
            text["metadata"] = {**text["metadata"], "name": f"t{step}", "uid": f"t{step}"}
            pod_ = decode_pod(msgspec.json.encode(text))
            some = tuple(name for name in snapshot.nodes().names if random.random() < 0.8)
            if not some:
                continue
            work = CycleInput(profile="p", pod=pod_, names=some)
            _, with_it = await cached.replica.run(work, run_filters, Supervisor(), cached.cache)
            _, without = await cached.replica.run(work, run_filters, Supervisor())
            assert texts(with_it) == texts(without)
            assert [run.plugin for run in with_it.plugins] == [
                run.plugin for run in without.plugins
            ]
            total += with_it.cached_nodes
    assert total > 0


def texts(run: FilterRun) -> list[tuple[str, str, bool] | None]:
    reasons = [(r.plugin, r.rejection.reason, r.rejection.unresolvable) for r in run.reasons]
    return [reasons[code - 1] if code else None for code in run.codes.tolist()]


class Slow(FilterPlugin):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        time.sleep(WORTH_SECONDS)
        return Rejection("no") if node.name == "n2" else None


@pytest.mark.parametrize("pods", [8, 0])
async def test_a_session_reports_what_it_caches(pods: int) -> None:
    async with filtering(Slow, cache_pods=pods) as service:
        session = await service.session(full_state(4, Slow))
        for _ in range(5):
            answer = (await session.ask(cycle=cycle(candidates=b"\x0f"))).result
        await session.end()
    assert (answer.status.code, answer.generation) == (0, 1)
    assert np.frombuffer(answer.verdicts, "<u2").tolist() == [0, 0, 1, 0]
    assert (answer.cached_nodes, answer.cached_from) == ((4, "default/p") if pods else (0, ""))


async def test_plugins_are_measured_again_from_time_to_time() -> None:
    made = await filled(ReadsNode)
    asked = [len(await made.asked()) for _ in range(2 * MEASURE_AFTER + 2)]
    assert asked == [*[0] * MEASURE_AFTER, 4, *[0] * MEASURE_AFTER, 4]
