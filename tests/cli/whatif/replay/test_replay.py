"""A replay of recorded cycles shows what another policy or other code of a plugin changes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gateway.journal.segments import find_segments, read_segment
from gateway.whatif.timeline import recorded_outcome
from moorage.v1 import journal_pb2 as pb
from moorage_host.plugins.ranking import weighted_mean
from services.scorer.plugins import BUILT_INS
from tests.cli.whatif.replay.plugins.crowded import FewPods
from tests.cli.whatif.replay.recorded import PLUGINS, PODS, moorage, policy

SCORERS = {each.name: each for each in (*BUILT_INS, FewPods)}


def replayed(journal: Path, *options: object, code: int) -> Any:
    result = moorage("replay", journal, "-o", "json", *options)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def cycles(journal: Path) -> Iterator[pb.JournalCycle]:
    for path in find_segments(journal):
        yield from (r.cycle for _, r in read_segment(path) if r.HasField("cycle"))


def test_the_recorded_policy_decides_all_cycles_as_recorded(journal: Path) -> None:
    report = replayed(journal, "--plugin", PLUGINS, code=0)
    assert report["segments"] > 1
    assert report["cycles"] == report["unchanged"] >= PODS
    assert (report["checked"], report["notReproducible"]) == (True, 0)
    assert (report["notReplayed"], report["notes"]) == ({}, [])


def test_another_weight_changes_rankings_as_the_recorded_scores_foretell(
    journal: Path, tmp_path: Path
) -> None:
    config = policy(tmp_path, 20)
    report = replayed(journal, "--plugin", PLUGINS, "--config", config, code=1)
    expected = sum(_ranks_otherwise(cycle, 20) for cycle in cycles(journal))
    changes = report["changes"]
    assert expected > PODS / 10
    assert (changes["verdicts"], changes["rankings"]) == (0, expected)
    assert (changes["winnersExact"], report["notReproducible"]) == (0, 0)
    assert changes["winnersLikely"] > 0
    assert "has weight 20 instead of 1" in {each["reason"] for each in report["reasons"]}
    assert {each["certainty"] for each in report["winners"]} == {"likely"}
    assert sum(after - before for before, after in report["nodes"].values()) == 0


def _ranks_otherwise(cycle: pb.JournalCycle, weight: int) -> bool:
    """Whether nodes have another order with another weight of one plugin."""
    outcome = recorded_outcome(cycle)
    weights = {each.plugin: each.weight for each in cycle.scores.plugins}

    def order(weights: dict[str, int]) -> Any:
        parts = []
        for each in outcome.scores.plugins if outcome.scores else ():
            normalization = SCORERS[each.plugin].normalization
            assert normalization is not None
            parts.append((weights[each.plugin], normalization.apply(each.raw.astype(float))))
        totals = weighted_mean(parts)
        return [] if totals is None else np.unique(totals.round(4), return_inverse=True)[1]

    return not np.array_equal(
        order(weights), order(weights | {"NodeResourcesBalancedAllocation": weight})
    )


def test_other_code_of_a_plugin_changes_verdicts_and_lone_winners(
    journal: Path, tmp_path: Path
) -> None:
    changed = tmp_path / "crowded.py"
    code = (PLUGINS / "crowded.py").read_text()
    changed.write_text(code.replace(">= 20", ">= 3"))
    report = replayed(journal, "--plugin", tmp_path, code=1)
    assert report["checked"] is False
    assert "other code than recorded: Crowded, FewPods" in report["notes"][0]
    (verdicts,) = [each for each in report["reasons"] if each["kind"] == "filter"]
    assert verdicts["plugin"] == "Crowded"
    assert verdicts["reason"] == "only the replay rejects: node is crowded"
    assert ": Crowded: node is crowded" in verdicts["example"]
    assert report["changes"]["verdicts"] == verdicts["cycles"] > 0


def test_people_get_tables(journal: Path, tmp_path: Path) -> None:
    first = find_segments(journal)[0]
    result = moorage("replay", first, "--plugin", PLUGINS, "--config", policy(tmp_path, 20))
    assert result.exit_code == 1
    assert "own rankings changed (exact but for annotations, which were left out)" in result.stdout
    assert "Note: annotations were left out of this journal" in result.stdout
    assert "PODS BY NODE" in result.stdout


def test_damage_is_reported_with_file_and_offset(journal: Path, tmp_path: Path) -> None:
    first = find_segments(journal)[0]
    content = first.read_bytes()
    damaged = tmp_path / "damaged.journal"
    for change, message in (
        (b"", f"{damaged}: offset 0: no segment of a journal: it begins with"),
        (content[:90_000] + b"\xff" * 40 + content[90_040:], "damaged"),
        (content[:18] + content[18:][::-1], f"{damaged}: offset 18: damaged: no record begins"),
    ):
        damaged.write_bytes(change or b"apiVersion: v1\n")
        result = moorage("replay", damaged, "--plugin", PLUGINS)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
        assert f"{damaged}: offset " in result.stderr


def test_a_torn_end_costs_one_record(journal: Path, tmp_path: Path) -> None:
    first = find_segments(journal)[0]
    torn = tmp_path / "torn.journal"
    torn.write_bytes(first.read_bytes()[:-100])
    report = replayed(torn, "--plugin", PLUGINS, code=0)
    assert report["cycles"] > PODS / 10
    (note,) = report["notes"]
    assert note.startswith(f"{torn}: offset ")
    assert "the last record is torn" in note


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    result = moorage("replay", tmp_path)
    assert (result.exit_code, result.stderr) == (
        2,
        f"moorage: {tmp_path} has no segments of a journal (*.journal)\n",
    )
