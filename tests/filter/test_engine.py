import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from moorage import (
    SKIP,
    FilterPlugin,
    Node,
    Nodes,
    PluginFailedError,
    Pod,
    Preparation,
    Rejection,
    Verdicts,
)
from moorage.execution import EnabledPlugin, FilterRun, Profile, Supervisor
from moorage.execution.filtering import LONGEST_REASON, MOST_REASONS, OTHER_REASONS
from moorage.testing import make_node, make_nodes, make_pod
from services.filter.engine import run_filters

NODES = make_nodes(*(make_node(f"n{i}") for i in range(4)))


class Named(FilterPlugin, abstract=True):
    """Rejects some nodes, and remembers which it was asked about."""

    def __init__(self, *names: str, reason: str = "no", unresolvable: bool = True) -> None:
        super().__init__()
        self.names = names
        self.rejection = Rejection(reason, unresolvable)
        self.asked: list[str] | None = None


class Rejects(Named):
    """Judges all nodes at once."""

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        self.asked = nodes.names
        return nodes.verdicts().reject([name in self.names for name in nodes.names], self.rejection)


class RejectsToo(Named):
    """The same in per-node form."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.asked = [*(self.asked or ()), node.name]
        return self.rejection if node.name in self.names else None


class Narrows(Rejects):
    """Knows beforehand which nodes come into question."""

    keep: tuple[str, ...] = ()

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return Preparation(nodes=nodes.where(np.array([n in self.keep for n in nodes.names])))


class Answers(FilterPlugin):
    """Answers whatever a test wants."""

    def __init__(self, answer: Callable[[Nodes], object]) -> None:
        super().__init__()
        self.answer = answer

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        return self.answer(nodes)  # type: ignore[return-value]


def narrowing(*keep: str, rejects: tuple[str, ...] = ()) -> Narrows:
    plugin = Narrows(*rejects)
    plugin.keep = keep
    return plugin


async def run(*plugins: FilterPlugin, aborts: bool = True, nodes: Nodes = NODES) -> FilterRun:
    enabled = tuple(EnabledPlugin(plugin=plugin, aborts=aborts) for plugin in plugins)
    profile = Profile(name="m", plugins=enabled)
    return await run_filters(profile, make_pod(), nodes, Supervisor())


def by_node(result: FilterRun) -> list[tuple[str, str] | None]:
    reasons = [(reason.plugin, reason.text) for reason in result.reasons]
    return [reasons[code - 1] if code else None for code in result.codes.tolist()]


async def test_the_first_plugin_to_reject_a_node_gives_its_reason() -> None:
    first = Rejects("n0", "n1", reason="full", unresolvable=False)
    second = RejectsToo("n1", "n2", reason="far")
    result = await run(first, second)
    rejected = ("Rejects", "full")
    assert by_node(result) == [rejected, rejected, ("RejectsToo", "far"), None]
    assert [reason.unresolvable for reason in result.reasons] == [False, True]


async def test_plugins_are_asked_about_survivors_only_and_not_at_all_without_any() -> None:
    first, second, third = Rejects("n0", "n3"), Rejects("n1", "n2"), Rejects()
    result = await run(first, second, third)
    assert first.asked == NODES.names
    assert second.asked == ["n1", "n2"]
    assert third.asked is None
    assert [report.plugin for report in result.plugins] == ["Rejects", "Rejects"]


async def test_prepare_may_narrow_the_nodes() -> None:
    plugin = narrowing("n1", "n3", rejects=("n3",))
    result = await run(plugin)
    outside = ("Narrows", "node(s) didn't satisfy plugin(s) [Narrows]")
    assert by_node(result) == [outside, None, outside, ("Narrows", "no")]
    assert plugin.asked == ["n1", "n3"]
    assert all(reason.unresolvable for reason in result.reasons)


async def test_narrowing_to_nothing_rejects_all_without_asking_further() -> None:
    plugin = narrowing()
    result = await run(plugin)
    assert set(by_node(result)) == {("Narrows", "node(s) didn't satisfy plugin(s) [Narrows]")}
    assert plugin.asked is None


async def test_narrowing_to_nodes_rejected_before_does_not_bring_them_back() -> None:
    class NarrowsToAll(Rejects):
        async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
            return Preparation(nodes=NODES)

    plugin = NarrowsToAll()
    result = await run(Rejects("n0"), plugin)
    assert by_node(result) == [("Rejects", "no"), None, None, None]
    assert plugin.asked == ["n1", "n2", "n3"]


def codes_without_reasons(nodes: Nodes) -> Verdicts:
    verdicts = nodes.verdicts()
    verdicts.codes[:] = 1
    return verdicts


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda _: None, r"filter must return Verdicts, not NoneType \(.*test_engine.py:\d+\)"),
        (lambda _: [True] * 4, r"filter must return Verdicts, not list \(.*test_engine.py:\d+\)"),
        (lambda nodes: nodes[:2].verdicts(), "filter returned 2 verdicts for 4 nodes"),
        (codes_without_reasons, "filter returned codes without reasons"),
        (
            lambda nodes: nodes.verdicts().reject(True, Rejection(5)),  # type: ignore[arg-type]
            "filter must return text as the reason, not int",
        ),
        (lambda _: 1 / 0, r"ZeroDivisionError: division by zero \(.*test_engine.py:\d+\)"),
    ],
    ids=["None", "list", "too few", "codes without reasons", "reason not text", "exception"],
)
async def test_a_failing_plugin_aborts_the_cycle_or_is_left_out(
    answer: Callable[[Nodes], object], problem: str
) -> None:
    with pytest.raises(PluginFailedError, match=f"plugin Answers failed in filter: {problem}"):
        await run(Answers(answer))
    result = await run(Rejects("n0"), Answers(answer), Rejects("n1"), aborts=False)
    assert by_node(result) == [("Rejects", "no"), ("Rejects", "no"), None, None]
    failures = [report.failure for report in result.plugins]
    assert (failures[0], failures[2]) == ("", "")
    assert failures[1]


async def test_overruns_of_one_pod_refuse_it_and_those_of_several_namespaces_all_pods() -> None:
    def loop(_: Nodes) -> object:
        while True:
            pass

    enabled = EnabledPlugin(plugin=Answers(loop), aborts=False, time_budget=0.03)
    profile = Profile(name="m", plugins=(enabled,))
    failures = []
    for owner in (("a", "p"), ("a", "p"), ("a", "q"), ("b", "p"), ("c", "p"), ("d", "p")):
        result = await run_filters(profile, make_pod(), NODES, Supervisor(owner=owner))
        failures.append(result.plugins[0].failure)
        assert by_node(result) == [None] * 4
    overran = [text.startswith("it took longer than its time budget") for text in failures]
    assert overran == [True, False, True, True, True, False]
    assert failures[1].startswith("not called for this pod for 1 s: 1 overrun, the last in filter")
    assert failures[5].startswith("suspended for 30 s: overruns of pods of 3 namespaces")


class Claims(Rejects):
    """Wants its pods to claim a node."""

    def wants_claim(self, pod: Pod) -> bool:
        return True


class SkipsAndClaims(Claims):
    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return SKIP


class ClaimsWrongly(Rejects):
    def wants_claim(self, pod: Pod) -> bool:
        return "yes"  # type: ignore[return-value]


async def test_plugins_say_that_the_pod_must_claim_a_node() -> None:
    result = await run(Rejects("n0"), Claims("n1"))
    assert result.claimants == ["Claims"]
    assert (await run(Rejects("n0"))).claimants == []


async def test_a_plugin_that_has_no_verdicts_may_want_a_claim_all_the_same() -> None:
    result = await run(SkipsAndClaims("n0"))
    assert (by_node(result), result.claimants) == ([None] * 4, ["SkipsAndClaims"])


async def test_a_wrong_answer_about_a_claim_is_the_plugins_failure() -> None:
    with pytest.raises(
        PluginFailedError, match=r"ClaimsWrongly.*wants_claim must return True or False"
    ):
        await run(ClaimsWrongly())


class Verbose(FilterPlugin):
    """Says more than anybody can read."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        listed = ", ".join(f"Insufficient example.com/{node.name}-{n}" for n in range(6000))
        return Rejection(listed if node.name == "n0" else "x" * 250_000)


async def test_long_reasons_are_cut() -> None:
    result = await run(Verbose())
    listed, echoed = [each.text for each in result.reasons]
    assert listed.startswith("Insufficient example.com/n0-0, Insufficient example.com/n0-1, ")
    shown = listed.count("Insufficient")
    assert listed.endswith(f"example.com/n0-{shown - 1} and {6000 - shown} more")
    assert max(len(listed), len(echoed)) < LONGEST_REASON + 20
    assert echoed.endswith("x…")


class Names(FilterPlugin):
    """Gives each node a reason of its own."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection(node.name)


async def test_an_answer_has_a_limited_number_of_reasons() -> None:
    nodes = make_nodes(*(make_node(f"n{i}") for i in range(MOST_REASONS + 3)))
    result = await run(Names(), nodes=nodes)
    texts = [result.reasons[code - 1].text for code in result.codes.tolist()]
    assert texts[:MOST_REASONS] == nodes.names[:MOST_REASONS]
    assert texts[MOST_REASONS:] == [OTHER_REASONS] * 3


class Raises(FilterPlugin):
    """Raises what nobody should."""

    def __init__(self, error: type[BaseException], where: str) -> None:
        super().__init__()
        self.error = error
        self.where = where

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        if self.where == "prepare":
            raise self.error
        if self.where == "prepare, later":
            await asyncio.sleep(0)
            raise self.error
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        raise self.error


@pytest.mark.parametrize("where", ["prepare", "prepare, later", "filter_node"])
@pytest.mark.parametrize(
    "error", [asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit]
)
async def test_what_would_end_a_session_or_a_process_is_the_plugins_failure(
    error: type[BaseException], where: str
) -> None:
    result = await run(Raises(error, where), Rejects("n0"), aborts=False)
    assert by_node(result) == [("Rejects", "no"), None, None, None]
    assert result.plugins[0].failure.startswith(error.__name__)
