"""A call costs no more than it may: counted, so that a busy machine changes nothing."""

from pathlib import Path

from bench import cost
from bench.report import Results, machine


async def test_no_step_makes_more_calls_than_its_ceiling(tmp_path: Path) -> None:
    results = Results(machine=machine(), quick=True)
    await cost.measure(results, tmp_path, lambda _: None)
    table, way, _ = results.tables
    assert [row[0] for row in table.rows] == [step.name for step in cost.STEPS]
    empty = [row[0] for row in way.rows if not any(row[1:])]
    assert not empty, f"no call passes {empty}: name their modules in bench/cost.py"
    assert all(verdict.measured for verdict in results.verdicts if verdict.unit != "messages")
    more = {verdict.work: verdict.measured for verdict in results.verdicts if not verdict.kept}
    assert not more, (
        f"{more}: make fewer, or raise the ceiling in bench/cost.py and say what it buys"
    )
