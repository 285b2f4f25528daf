"""What `moorage top` concludes from two readings, and how it looks."""

import io

import pytest
from aiohttp import web
from rich.console import Console

from cli.decisions.top import View, draw, newest, view
from cli.shared.gateway.client import connected
from cli.shared.gateway.metrics import Change, sample
from cli.shared.gateway.options import GatewayOptions

PLUGIN = "a-plugin-with-quite-a-long-name-for-a-narrow-terminal"


def metrics(calls: int, slow: int, rejected: int) -> str:
    """Return metrics after so many calls of 1 ms, and so many of 9 ms."""
    call = "moorage_extender_request_duration_seconds"
    plugin = "moorage_plugin_execution_duration_seconds"
    total, seconds = calls + slow, calls * 0.001 + slow * 0.009
    labels = f'plugin="{PLUGIN}",phase="filter"'
    return f"""\
# TYPE {call} histogram
{call}_bucket{{le="0.002",result="ok",verb="filter"}} {calls}
{call}_bucket{{le="0.01",result="ok",verb="filter"}} {total}
{call}_bucket{{le="+Inf",result="ok",verb="filter"}} {total}
{call}_sum{{result="ok",verb="filter"}} {seconds}
{call}_count{{result="ok",verb="filter"}} {total}
# TYPE moorage_extender_requests counter
moorage_extender_requests_total{{result="ok",verb="filter"}} {calls}
moorage_extender_requests_total{{result="error",verb="filter"}} {slow}
# TYPE {plugin} histogram
{plugin}_bucket{{le="+Inf",{labels}}} {total}
{plugin}_sum{{{labels}}} {seconds}
{plugin}_count{{{labels}}} {total}
# TYPE moorage_rejected_nodes counter
moorage_rejected_nodes_total{{plugin="{PLUGIN}"}} {rejected}
# TYPE moorage_leader gauge
moorage_leader 1
# TYPE moorage_cache_size gauge
moorage_cache_size{{type="nodes"}} 5000
"""


def seen(before: str, after: str, **more: object) -> View:
    change = Change(sample(before, 10.0), sample(after, 12.0))
    decided = {"time": "2026-11-23T01:30:00Z", "outcome": "bound", "node": "n1", "reason": "best"}
    listed = [{"namespace": "a", "pod": "web-" + "x" * 60, **decided}]
    return view(change, "http://gateway:9090", more.get("replicas", {"services": []}), listed)


def test_rates_and_latencies_are_of_the_interval() -> None:
    found = seen(metrics(1000, 500, 7), metrics(1090, 510, 47))
    (calls,) = [each for each in found.work if each.name == "filter"]
    (plugin,) = found.plugins
    assert (calls.rate, calls.failed, found.cycles) == (50, 5, 50)
    assert calls.p50 == pytest.approx(0.00111, rel=0.01)
    assert calls.p99 == pytest.approx(0.0092, rel=0.01)
    assert plugin.mean == pytest.approx(0.0018)
    assert plugin.rejected == 20
    assert (found.decides, found.nodes) == (True, 5000)


def test_a_gateway_that_restarted_counts_from_zero() -> None:
    found = seen(metrics(1000, 500, 7), metrics(10, 0, 2))
    assert found.cycles == 5
    assert found.plugins[0].rejected == 1


def test_an_idle_gateway_has_no_latencies() -> None:
    found = seen(metrics(5, 5, 1), metrics(5, 5, 1))
    assert found.cycles == 0
    assert found.plugins[0].mean is None
    assert found.work[0].p99 is None


def drawn(found: View, width: int) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, height=50, markup=False, emoji=False)
    console.print(draw(found))
    return text.getvalue().splitlines()


@pytest.mark.parametrize(("seconds", "is_told"), [(34, False), (150, True)])
def test_a_silence_of_the_api_server_is_told_if_it_is_none_of_every_minute(
    seconds: int, is_told: bool
) -> None:
    age = f'moorage_cache_age_seconds{{resource="pods"}} {seconds}\n'
    shown = "\n".join(drawn(seen(metrics(1, 0, 0), metrics(2, 0, 0) + age), 80))
    assert ("API server silent for 150 s" in shown) == is_told


async def test_a_pod_has_one_row_however_often_it_was_decided_on() -> None:
    async def decisions(_: web.Request) -> web.Response:
        decided = [("a", 9), ("b", 8), ("a", 7), ("a", 6), ("a", 5), ("a", 4), ("c", 3)]
        items = [{"namespace": "d", "pod": pod, "id": number} for pod, number in decided]
        return web.json_response({"items": items, "continue": ""})

    app = web.Application()
    app.router.add_get("/decisions", decisions)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    options = GatewayOptions(admin=f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with connected(options) as gateway:
        shown = await newest(gateway)
    await runner.cleanup()
    assert [(each["pod"], each["id"]) for each in shown] == [("a", 9), ("b", 8), ("c", 3)]


@pytest.mark.parametrize("width", [60, 80])
def test_it_fits_the_terminal(width: int) -> None:
    listed = {
        "services": [
            {
                "service": "filter",
                "problem": "",
                "replicas": [
                    {
                        "place": "10.244.133.211:50051",
                        "replica": "8a0b52a7c1d2",
                        "generation": 1234567,
                        "behind": 3,
                        "unanswered": 1,
                        "problems": {},
                    }
                ],
            },
            {"service": "scorer", "problem": "none is connected", "replicas": []},
        ]
    }
    found = seen(metrics(1000, 500, 7), metrics(1090, 510, 47), replicas=listed)
    lines = drawn(found, width)
    assert max(map(len, lines)) <= width
    shown = " ".join(lines)
    named = ("decides", "a-plugin", "filter", "a/web-", "n1", "10.244.133.211:50051")
    numbers = ("50.0 cycles/s", "1.8 ms", "20.0")
    assert [part for part in (*named, *numbers) if part not in shown] == []
    assert "none is" in shown
