import numpy as np
import pytest

from moorage import (
    SKIP,
    Node,
    Nodes,
    Normalization,
    PluginFailedError,
    Pod,
    Preparation,
    ScorePlugin,
    Scores,
)
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.testing import make_node, make_nodes, make_pod
from moorage_host.plugins.ranking import ScoreRun, run_scores
from services.scorer.engine import run_normalization, run_shard

NODES = make_nodes(*(make_node(f"n{i}") for i in range(3)))


class Gives(ScorePlugin):
    """Gives what a test wants."""

    def __init__(self, *scores: object) -> None:
        super().__init__()
        self.scores = scores

    def score(self, pod: Pod, nodes: Nodes) -> list[float]:
        return list(self.scores)  # type: ignore[arg-type]


class GivesPerNode(Gives):
    """The same in per-node form."""

    score = ScorePlugin.score  # type: ignore[assignment]

    def score_node(self, pod: Pod, node: Node) -> float:
        return self.scores[node.row]  # type: ignore[return-value]


class Halves(Gives):
    """Normalises, in place."""

    def normalize(self, scores: Scores) -> Scores:
        scores /= 2
        return scores


class Normalises(Gives):
    """Normalises to what a test wants."""

    result: object = None

    def normalize(self, scores: Scores) -> Scores:
        return self.result  # type: ignore[return-value]


class Skips(Gives):
    """Has no opinion."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return SKIP


async def run(*plugins: ScorePlugin | tuple[ScorePlugin, int], aborts: bool = True) -> ScoreRun:
    weighted = [plugin if isinstance(plugin, tuple) else (plugin, 1) for plugin in plugins]
    enabled = (EnabledPlugin(plugin=p, weight=w, aborts=aborts) for p, w in weighted)
    profile = Profile(name="m", plugins=tuple(enabled))
    return await run_scores(profile, make_pod(), NODES, Supervisor())


def totals(result: ScoreRun) -> list[float]:
    assert result.totals is not None
    return [float(total) for total in result.totals]


async def test_the_total_is_the_mean_by_weight() -> None:
    # (100*3 + 0*1)/4, (50*3 + 100*1)/4, (0*3 + 100*1)/4
    result = await run((Gives(100, 50, 0), 3), (GivesPerNode(0, 100, 100), 1))
    assert totals(result) == [75, 62.5, 25]
    assert [(s.plugin, s.weight) for s in result.scores] == [("Gives", 3), ("GivesPerNode", 1)]


async def test_raw_and_normalised_scores_are_kept_apart() -> None:
    result = await run(Halves(200, 100, 0))
    (scores,) = result.scores
    assert scores.raw.tolist() == [200, 100, 0]
    assert scores.normalized.tolist() == [100, 50, 0]
    assert totals(result) == [100, 50, 0]


async def test_without_any_opinion_there_are_no_totals() -> None:
    assert (await run()).totals is None
    result = await run(Skips(1, 2, 3))
    assert result.totals is None
    assert [report.skipped for report in result.plugins] == [True]


async def test_numbers_of_all_kinds_are_numbers() -> None:
    assert totals(await run(Gives(True, np.int64(2), 3.5))) == [1, 2, 3.5]
    assert totals(await run(GivesPerNode(1, np.float32(2), 3.5))) == [1, 2, 3.5]


LINE = r" \(.*test_engine.py:\d+\)"
OUTSIDE = r"which is outside 0\.\.100"
ADVICE = f"{OUTSIDE}; set normalization or override normalize"
INFINITE = "which is not finite"


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (Gives(1, 2), rf"score: score returned an array of shape \(2,\) for 3 nodes{LINE}"),
        (
            Gives([1], [2], [3]),
            rf"score: score returned an array of shape \(3, 1\) for 3 nodes{LINE}",
        ),
        (Gives(1, 2, "x"), f"score: score must return one number for each node, not list{LINE}"),
        (Gives(1, 2, None), f"score: score returned nan for node n2, {INFINITE}{LINE}"),
        (Gives(1, float("nan"), 2), f"score: score returned nan for node n1, {INFINITE}{LINE}"),
        (Gives(1, 2, float("inf")), f"score: score returned inf for node n2, {INFINITE}{LINE}"),
        (Gives(1, 10**400), f"score: score returned a number too large for a float{LINE}"),
        (
            Gives(1, 2, 100.5),
            rf"normalize: score returned 100.5 for node n2, {ADVICE}{LINE}",
        ),
        (
            Gives(1, -1, 0),
            f"normalize: score returned -1 for node n1, {ADVICE}",
        ),
        (
            GivesPerNode(1, -1, 0),
            f"normalize: score_node returned -1 for node n1, {ADVICE}{LINE}",
        ),
        (
            Halves(0, 0, 300),
            rf"normalize: normalize returned 150 for node n2, {OUTSIDE}{LINE}",
        ),
        (Normalises(1, 2, 3), r"normalize: normalize returned an array of shape \(\)"),
        (
            GivesPerNode(1, 2, "x"),
            f"score_node: .* must return a number, not str for node n2{LINE}",
        ),
        (
            GivesPerNode(1, 2, True),
            f"score_node: .* must return a number, not bool for node n2{LINE}",
        ),
        (GivesPerNode(1), f"score_node: IndexError: tuple index out of range for node n1{LINE}"),
    ],
    ids=lambda value: "" if isinstance(value, str) else f"{type(value).__name__}{value.scores}",
)
async def test_a_failing_plugin_aborts_the_cycle_or_is_neutral(
    plugin: ScorePlugin, problem: str
) -> None:
    with pytest.raises(PluginFailedError, match=f"plugin {plugin.name} failed in {problem}"):
        await run(plugin)
    result = await run((plugin, 50), Gives(100, 50, 0), aborts=False)
    assert totals(result) == [100, 50, 0], "neither its scores nor its weight count"
    assert result.plugins[0].failure
    assert result.plugins[1].failure == ""
    assert [scores.plugin for scores in result.scores] == ["Gives"]


NAMESPACES = [("a", "p"), ("b", "p"), ("c", "p")]


class Prepared(Gives):
    """Scores by what `prepare` saw, and normalises by the best of all."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.seen = len(nodes)
        return None

    def score(self, pod: Pod, nodes: Nodes) -> list[float]:
        return [self.seen + float(row) for row in nodes.rows]

    def normalize(self, scores: Scores) -> Scores:
        best: float = scores.max()
        return 100 * scores / best


async def test_shards_that_are_normalised_together_are_the_whole() -> None:
    async def shard(*rows: int) -> ScoreRun:
        return await run_shard(profile, make_pod(), NODES, Supervisor(), rows=np.array(rows))

    plugins = (Prepared(), Skips(1, 2, 3))
    enabled = tuple(EnabledPlugin(plugin=plugin, weight=2) for plugin in plugins)
    profile = Profile(name="m", plugins=enabled)
    whole = await run_scores(profile, make_pod(), NODES, Supervisor())
    first, second = await shard(0, 7), await shard(1, 2)
    assert first.totals is None
    assert [run.skipped for run in first.plugins] == [False, True]
    assert list(first.raw) == ["Prepared"]
    raw = {"Prepared": np.concatenate([first.raw["Prepared"], second.raw["Prepared"]])}
    assert raw["Prepared"].tolist() == [3, 4, 5]
    together = await run_normalization(profile, make_pod(), NODES, Supervisor(), raw=raw)
    assert totals(together) == totals(whole)
    assert together.scores[0].raw.tolist() == whole.scores[0].raw.tolist()


async def test_only_scoring_is_time_for_nodes() -> None:
    ticks = iter(range(100))
    enabled = EnabledPlugin(plugin=Prepared(), time_budget=99)
    supervisor = Supervisor(clock=lambda: float(next(ticks)))
    await run_scores(Profile(name="m", plugins=(enabled,)), make_pod(), NODES, supervisor)
    (report,) = supervisor.runs
    assert report.node_seconds == 1, "the clock goes on by one at the end of each step"
    assert report.seconds == 3


async def test_a_plugin_without_raw_scores_is_left_out_of_the_normalisation() -> None:
    enabled = tuple(EnabledPlugin(plugin=p) for p in (Prepared(), Gives(0, 0, 0)))
    profile = Profile(name="m", plugins=enabled)
    raw = {"Gives": np.array([10.0, 20.0, 30.0])}
    result = await run_normalization(profile, make_pod(), NODES, Supervisor(), raw=raw)
    assert totals(result) == [10, 20, 30]
    assert [run.plugin for run in result.plugins] == ["Gives"]


async def test_overruns_of_normalize_suspend_the_plugin_in_shards_as_well() -> None:
    class Slow(Gives):
        def normalize(self, scores: Scores) -> Scores:
            while True:
                pass

    enabled = EnabledPlugin(plugin=Slow(1, 2, 3), aborts=False, time_budget=0.03)
    profile, raw = Profile(name="m", plugins=(enabled,)), {"Slow": np.array([1.0, 2.0, 3.0])}
    for owner in NAMESPACES:
        supervisor = Supervisor(owner=owner)
        await run_shard(profile, make_pod(), NODES, supervisor, rows=np.arange(3))
        await run_normalization(profile, make_pod(), NODES, supervisor, raw=raw)
    result = await run_shard(profile, make_pod(), NODES, Supervisor(), rows=np.arange(3))
    assert result.plugins[0].failure.startswith("suspended")


async def test_scoring_a_shard_is_all_that_a_plugin_without_normalize_has_to_do() -> None:
    """Whoever remembers raw scores normalises them without it, so no further success comes."""

    class Slow(Gives):
        normalization = Normalization.MAXIMUM
        is_slow = True

        def score(self, pod: Pod, nodes: Nodes) -> list[float]:
            while self.is_slow:
                pass
            return [1.0] * len(nodes)

    plugin = Slow()
    enabled = EnabledPlugin(plugin=plugin, aborts=False, time_budget=0.03)
    profile = Profile(name="m", plugins=(enabled,))
    for number in range(6):
        plugin.is_slow = number % 2 == 0
        supervisor = Supervisor(owner=(f"namespace-{number}", "p"))
        result = await run_shard(profile, make_pod(), NODES, supervisor, rows=np.arange(3))
        assert bool(result.plugins[0].failure) == plugin.is_slow, "overruns were not in a row"
