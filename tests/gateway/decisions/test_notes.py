"""What plugins note about a cycle is in the decision, also if replicas share the cycle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.cycle.answers import PhaseScores
from gateway.cycle.decision import PluginRecord, ScoreRecord
from gateway.cycle.nodes import NodeRows
from gateway.replicas.sharding import add_shards, join_reports
from moorage import FilterPlugin, Node, Nodes, Pod, ScorePlugin
from moorage.execution import PluginScores
from tests.gateway.sharing import NAMES, sharing
from tools.inprocess.gateway import Gateway, Options, pod, policy_of


class NotesFilter(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> None:
        if node.name == "n0":
            self.note("5 s old, on n0")


class NotesScore(ScorePlugin):
    def score(self, pod: Pod, nodes: Nodes) -> list[float]:
        self.note("7 samples")
        raise ValueError("no data")


async def noted(running: Gateway, obj: Any, names: Sequence[str]) -> dict[str, str]:
    await running.filter(obj, *names)
    await running.prioritize(obj, *names)
    _, answer = await running.get(f"/decisions/default/{obj['metadata']['name']}")
    decision = answer["attempts"][0]
    plugins = [*decision["filter"]["plugins"], *decision["score"]["plugins"]]
    return {plugin["plugin"]: plugin["note"] for plugin in plugins if "note" in plugin}


@pytest.mark.parametrize("replicas", [1, 2])
async def test_notes_are_in_the_decision(tmp_path: Path, replicas: int) -> None:
    policy = policy_of("{multiPoint: {enabled: [{name: NotesFilter}, {name: NotesScore}]}}")
    plugins = (NotesFilter, NotesScore)
    options: Options = {"policy": policy, "nodes": NAMES, "count": replicas}
    async with sharing(tmp_path, *plugins, **options) as running:
        notes = await noted(running, pod(), NAMES)
        assert notes == {"NotesFilter": "5 s old, on n0", "NotesScore": "7 samples"}
        others = await noted(running, pod("q"), NAMES[1:])
        assert others == {"NotesScore": "7 samples"}
        scattered = running.sample("moorage_scattered_cycles_total", phase="filter")
        assert scattered == (0 if replicas == 1 else 2)


def reports(*notes: str) -> list[PluginRecord]:
    return [PluginRecord(plugin=f"p{i}", seconds=0.1, note=note) for i, note in enumerate(notes)]


def record(*notes: str) -> ScoreRecord:
    return ScoreRecord(nodes=1, seconds=0.1, plugins=reports(*notes))


def test_the_note_of_a_normalisation_comes_first_because_it_sees_all_nodes() -> None:
    found, totals = NodeRows.at(np.arange(1), 1), np.ones(1, np.float32)
    opinions = [
        PluginScores(plugin=name, weight=0, raw=np.ones(1), normalized=totals[:0])
        for name in ("p0", "p1")
    ]
    shard = PhaseScores(
        generation=1,
        bitmap=found.bitmap,
        totals=totals[:0],
        plugins=opinions,
        rows=found,
        record=record("a", "b"),
    )
    after = PhaseScores(
        generation=1, bitmap=b"\1", totals=totals, plugins=(), record=record("", "normalised")
    )
    add_shards(after, [shard])
    joined = join_reports([reports("", "b1"), reports("a2", "b2"), reports("", "")])
    assert [report.note for report in joined] == ["a2", "b1"], "of several shards the first"
    assert [report.note for report in after.record.plugins] == ["a", "normalised"]
    assert after.record.seconds == pytest.approx(0.2)
