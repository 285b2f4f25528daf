"""A call costs no more than it may: counted, so that a busy machine changes nothing."""

from pathlib import Path

from bench import cost
from bench.results import Results, machine


async def test_no_step_makes_more_calls_than_its_ceiling(tmp_path: Path) -> None:
    results = Results(machine=machine(), quick=True)
    await cost.measure(results, tmp_path, lambda _: None)
    found = {one.step: one.calls for one in results.cost}
    assert found.keys() == cost.CEILINGS.keys()
    assert min(found.values()) > 0
    more = {step: calls for step, calls in found.items() if calls > cost.CEILINGS[step]}
    assert not more, (
        f"{more} calls of our own functions, allowed are {cost.CEILINGS}: "
        "make fewer, or raise the ceiling in bench/cost.py and say what it buys"
    )
    passed = {one.step: one.classes for one in results.cost}
    wide = {step: classes for step, classes in passed.items() if classes > cost.MOST_CLASSES[step]}
    assert not wide, f"{wide} classes of ours, allowed are {cost.MOST_CLASSES}"
    assert {one.step: one.sent for one in results.cost}[cost.BIND] == 1
