"""What callers can make the edge hold at once."""

import asyncio

from gateway.cycle import Cycle
from tools.inprocess.edge import (
    CHUNKED_HEAD,
    Filtered,
    ScriptedCycles,
    go_request,
    names_args,
    serving,
    text,
)

BODY = text(names_args("a", "b")).encode()
CALL = go_request("POST", "/filter", BODY)
CHUNKED = CHUNKED_HEAD + b"%x\r\n%s\r\n" % (
    len(BODY),
    BODY,
)

REFUSED = "moorage_extender_bad_requests_total"


async def test_a_body_that_does_not_fit_beside_others_is_refused_until_they_are_answered() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(call: Cycle) -> Filtered:
        begun.set()
        await go_on.wait()
        return Filtered(feasible=call.nodes)

    cycles = ScriptedCycles(on_filter=wait)
    async with serving(cycles, body_bytes_in_flight=len(BODY) + 1) as edge:
        async with edge.connect() as first, edge.connect() as second, edge.connect() as chunked:
            await first.send(CALL)
            await begun.wait()
            refused = await second.post("/filter", BODY)
            assert "--body-bytes-in-flight; try again" in refused.json["Error"]
            await chunked.send(CHUNKED)
            assert "--body-bytes-in-flight; try again" in (await chunked.answer()).json["Error"]
            assert edge.count(REFUSED, verb="filter", reason="in_flight") == 2
            go_on.set()
            assert (await first.answer()).json["NodeNames"] == ["a", "b"]
        async with edge.connect() as third:
            assert (await third.post("/filter", BODY)).json["NodeNames"] == ["a", "b"]


async def test_a_body_fits_alone_whatever_the_limit_on_all() -> None:
    async with serving(body_bytes_in_flight=1) as edge, edge.connect() as wire:
        for _ in range(2):
            assert (await wire.post("/filter", BODY)).json["NodeNames"] == ["a", "b"]
