"""What an operator can see of the edge."""

from gateway.cycle import CallFailedError, Cycle
from tools.inprocess.edge import Filtered, ScriptedCycles, names_args, serving, subset


async def keep_one(call: Cycle) -> Filtered:
    return Filtered(feasible=subset(call, 0))


async def test_calls_are_counted_and_timed_by_verb_and_result() -> None:
    async with serving() as edge:
        await edge.post("/filter", names_args("a"))
        await edge.post("/filter", "{}")
        labels = {"verb": "filter", "result": "ok"}
        assert edge.count("moorage_extender_requests_total", **labels) == 1
        assert edge.count("moorage_extender_request_duration_seconds_count", **labels) == 1
        bad = {"verb": "filter", "result": "bad_request"}
        assert edge.count("moorage_extender_requests_total", **bad) == 1


async def test_nodes_are_counted_on_their_way_in_and_out() -> None:
    async with serving(ScriptedCycles(on_filter=keep_one)) as edge:
        await edge.post("/filter", names_args("a", "b", "c"))
        for direction, nodes in (("in", 3), ("out", 1)):
            labels = {"verb": "filter", "direction": direction}
            assert edge.count("moorage_extender_nodes_sum", **labels) == nodes


async def test_failures_have_results_of_their_own() -> None:
    async def fail(_: Cycle) -> Filtered:
        raise CallFailedError("filter service")

    async with serving(ScriptedCycles(on_filter=fail)) as edge:
        await edge.post("/filter", names_args("a"))
        assert edge.count("moorage_extender_requests_total", verb="filter", result="failed") == 1
        assert edge.count("moorage_extender_hidden_failures_total", result="failed") == 0


async def test_every_series_is_there_before_the_first_call() -> None:
    async with serving() as edge:
        for verb in ("filter", "prioritize", "preempt", "bind"):
            labels = {"verb": verb, "result": "timeout"}
            assert edge.registry.get_sample_value("moorage_extender_requests_total", labels) == 0
