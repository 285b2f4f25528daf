"""A call costs no more than it may: counted, so that a busy machine changes nothing."""

from pathlib import Path

import pytest

from bench import cost
from bench.report import Results, machine

TIMES = 3
"""How often it is measured: on a busy machine work in the background may be in all rounds."""


@pytest.mark.timeout(120 * TIMES)
async def test_no_step_makes_more_calls_than_its_ceiling(tmp_path: Path) -> None:
    for number in range(TIMES):
        folder = tmp_path / str(number)
        folder.mkdir()
        results = Results(machine=machine(), quick=True)
        await cost.measure(results, folder, lambda _: None)
        more = {verdict.work: verdict.measured for verdict in results.verdicts if not verdict.kept}
        if not more:
            break
    table, way, _ = results.tables
    assert [row[0] for row in table.rows] == [step.name for step in cost.STEPS]
    empty = [row[0] for row in way.rows if not any(row[1:])]
    assert not empty, f"no call passes {empty}: name their modules in bench/cost.py"
    assert all(verdict.measured for verdict in results.verdicts if verdict.unit != "messages")
    assert not more, (
        f"{more}: make fewer, or raise the ceiling in bench/cost.py and say what it buys"
    )
