"""A decision shows who asked, what plugins noted, also of shards, and what followed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.cycle.answers import PhaseScores
from gateway.cycle.cycle_states import VALUE_BYTES, CycleStates
from gateway.cycle.decision import PluginRecord, ScoreRecord
from gateway.cycle.nodes import NodeRows
from gateway.replicas.sharding import add_shards, join_reports
from moorage import FilterPlugin, Node, Nodes, Pod, ScorePlugin
from moorage.execution import PluginScores
from moorage.plugin.cycle_state import KeptValue
from tests.gateway.decisions.test_lists import NAMES, decide, deciding
from tests.gateway.sharing import NAMES as MANY
from tests.gateway.sharing import sharing
from tools.inprocess.gateway import Gateway, Options, gateway, pod, policy_of


async def test_a_decision_shows_how_it_came_about(tmp_path: Path) -> None:
    async with deciding(tmp_path) as running:
        await decide(running, "a", *NAMES[:3])
        await decide(running, "a", *NAMES[:3])
        _, answer = await running.get("/decisions/default/a")
    made, before = answer["attempts"]
    assert made["caller"] == "127.0.0.1"
    assert (made["clusterNodes"], made["filter"]["nodes"]) == (4, 3)
    assert (made["attempt"], made["previous"]) == (2, before["id"])
    assert made["outcome"] == "binding"
    stages = made["queueSeconds"] + made["filter"]["seconds"] + made["score"]["seconds"]
    assert 0 < stages <= made["seconds"]
    plugins = [*made["filter"]["plugins"], *made["score"]["plugins"]]
    assert [each["plugin"] for each in plugins] == ["Picky", "Numbered"]
    assert all(len(each["version"]) == 16 and each["seconds"] > 0 for each in plugins)
    assert before["filter"]["plugins"][0]["version"] == plugins[0]["version"]


async def test_the_page_of_a_pod_has_its_events(tmp_path: Path) -> None:
    async with gateway(tmp_path) as running:
        made = running.api.pod("p")
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "p.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]},
            "reason": "FailedScheduling",
            "message": "0/3 nodes are available",
            "type": "Warning",
            "action": "Scheduling",
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
            "eventTime": "2026-11-27T01:02:03.000000Z",
        }
        other = {
            **event,
            "metadata": {"name": "q.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod"},
        }
        for each in (event, other):
            running.api.create("/apis/events.k8s.io/v1/namespaces/default/events", each)
        _, answer = await running.get("/decisions/default/p")
        (found,) = answer["events"]
        assert found["by"] == "default-scheduler"
        assert found["note"] == "0/3 nodes are available"
        assert answer["created"] == made["metadata"]["creationTimestamp"]
        running.api.fault("list", "events", status=403)
        _, answer = await running.get("/decisions/default/p")
        assert answer["events"] is None


def values(**texts: bytes) -> dict[str, KeptValue]:
    return {key: KeptValue(json=text) for key, text in texts.items()}


def test_the_score_phase_adds_to_the_filter_phase_of_the_same_attempt() -> None:
    states = CycleStates(10_000)
    states.begin("uid", {"device": KeptValue(by_node={"a": b"1"}), **values(why=b'"first"')})
    states.add("uid", values(why=b'"later"', score=b"7"))
    assert states.at("uid", "a") == {"device": b"1", "why": b'"later"', "score": b"7"}
    assert states.at("uid", "b") == {"why": b'"later"', "score": b"7"}
    assert states.at("other", "a") == {}
    states.begin("uid", values(two=b"2"))
    assert states.at("uid", "a") == {"two": b"2"}, "a new attempt begins without any"
    states.end("uid")
    assert states.at("uid", "a") == {}


def test_the_oldest_goes_first_if_it_is_too_much() -> None:
    states = CycleStates(3 * (VALUE_BYTES + 1))
    for uid in "abcd":
        states.begin(uid, values(key=b"1"))
    assert [bool(states.at(uid, "n")) for uid in "abcd"] == [False, True, True, True]
    states.begin("e", values(key=b"1" * 10_000))
    assert not any(states.at(uid, "n") for uid in "abcde")
    states.begin("f", values(key=b"1"))
    assert states.at("f", "n")


class NotesFilter(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> None:
        if node.name == "n0":
            self.note("5 s old, on n0")


class NotesScore(ScorePlugin):
    def score(self, pod: Pod, nodes: Nodes) -> list[float]:
        self.note("7 samples")
        raise ValueError("no data")


async def notes_of(running: Gateway, obj: Any, names: Sequence[str]) -> dict[str, str]:
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
    options: Options = {"policy": policy, "nodes": MANY, "count": replicas}
    async with sharing(tmp_path, *plugins, **options) as running:
        notes = await notes_of(running, pod(), MANY)
        assert notes == {"NotesFilter": "5 s old, on n0", "NotesScore": "7 samples"}
        others = await notes_of(running, pod("q"), MANY[1:])
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
