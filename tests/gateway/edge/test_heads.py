"""Headers and paths of requests, headers of responses, and what an operator can see of the edge."""

from collections.abc import Sequence
from email.utils import parsedate_to_datetime

import pytest

from gateway.cycle import Cycle
from moorage.errors import ConfigurationError
from tools.inprocess.edge import (
    Filtered,
    ScriptedCycles,
    Wire,
    names_args,
    pod,
    serving,
    subset,
    text,
)

BODY = text({"Pod": pod(), "Nodes": None, "NodeNames": ["a", "b"]}).encode()

HEADERS = ("Host: gateway", "Content-Type: application/json")


def request(path: str = "/filter", *lines: str, version: str = "1.1") -> bytes:
    head = (f"POST {path} HTTP/{version}", *HEADERS, f"Content-Length: {len(BODY)}", *lines)
    return ("\r\n".join(head) + "\r\n\r\n").encode()


async def test_a_caller_that_waits_for_leave_to_send_its_body_gets_it() -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(request("/filter", "Expect: 100-continue"))
        assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_a_caller_that_expects_anything_else_is_refused() -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(request("/filter", "Expect: the-impossible") + BODY)
        assert (await wire.answer()).status == 417


async def filtered(wire: Wire, *lines: str, version: str) -> dict[str, str]:
    await wire.send(request("/filter", *lines, version=version) + BODY)
    answer = await wire.answer()
    assert answer.json["NodeNames"] == ["a", "b"]
    return answer.headers


@pytest.mark.parametrize("wish", [("keep-alive", "1.0"), ("close", "1.1")])
async def test_old_callers_and_those_that_want_to_leave_are_let_go(wish: tuple[str, str]) -> None:
    connection, version = wish
    async with serving() as edge, edge.connect() as wire:
        headers = await filtered(wire, f"Connection: {connection}", version=version)
        assert headers["connection"] == "close"
        assert await wire.closed_by_server()


@pytest.mark.parametrize(
    "path",
    ["/filter?timeout=5s", "/filter/", "/filter/?a=b", "/%66ilter", "/filter/P", "/filter/P/"],
)
async def test_other_spellings_of_a_path_lead_to_the_same(path: str) -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(request(path) + BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]
        assert edge.cycles.scheduling[-1].plugin == ("P" if "P" in path else "")


async def test_responses_have_their_type_and_their_date() -> None:
    async with serving() as edge, edge.connect() as wire:
        headers = await filtered(wire, version="1.1")
    assert headers["content-type"] == "application/json"
    assert parsedate_to_datetime(headers["date"]).tzinfo is not None
    assert not headers.keys() & {"connection", "content-encoding"}


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"Content-Length: -1",
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"X-Long: " + b"x" * 10_000,
    ],
    ids=["no header", "negative length", "two lengths", "length and chunks", "long header"],
)
async def test_a_malformed_head_is_a_400_and_the_end_of_its_connection_only(line: bytes) -> None:
    async with serving() as edge, edge.connect() as wire, edge.connect() as other:
        await wire.send(b"POST /filter HTTP/1.1\r\nHost: gateway\r\n%b\r\n\r\n" % line + BODY)
        assert (await wire.answer()).status == 400
        assert await wire.closed_by_server()
        assert (await other.post("/filter", BODY)).status == 200
    assert len(edge.cycles.scheduling) == 1


ARTICLE = "/my_scheduler_extension/my_new_priorities/image_score"


async def score_by_plugin(call: Cycle) -> Sequence[int]:
    return [len(call.plugin)] * len(call.nodes.names)


@pytest.mark.parametrize("end", ["", "/"])
async def test_one_plugin_answers_at_the_path_of_an_alias(end: str) -> None:
    cycles = ScriptedCycles(on_prioritize=score_by_plugin)
    alias = (f"{ARTICLE}=prioritize/ImageScore",)
    async with serving(cycles, extender_alias=alias) as edge:
        answer = await edge.post(ARTICLE + end, names_args("a"))
        assert (answer.status, answer.json) == (200, [{"Host": "a", "Score": len("ImageScore")}])
        await edge.post("/prioritize/Other", names_args("a"))
        await edge.post("/prioritize", names_args("a"))
    assert [call.plugin for call in cycles.scheduling] == ["ImageScore", "Other", ""]


async def test_a_verb_itself_can_have_an_alias_outside_of_the_prefix() -> None:
    cycles = ScriptedCycles()
    aliases = ("/old/predicates=filter", "/old/bind=bind")
    async with serving(cycles, extender_prefix="new", extender_alias=aliases) as edge:
        assert (await edge.post("/old/predicates", names_args("a"))).json["NodeNames"] == ["a"]
        binding = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
        assert (await edge.post("/old/bind", binding)).json == {"Error": ""}
        assert (await edge.post("/new/filter", names_args("a"))).status == 200
        assert (await edge.post("/old/predicates/NodeName", names_args("a"))).status == 404
    assert [call.plugin for call in cycles.scheduling] == ["", ""]
    assert [call.node for call in cycles.binds] == ["a"]


@pytest.mark.parametrize(
    ("aliases", "problem"),
    [
        (("/a",), "write PATH=VERB or PATH=VERB/PLUGIN"),
        (("a=filter",), "PATH must be like"),
        (("/=filter",), "PATH must be like"),
        (("/{x}=filter",), "PATH must be like"),
        (("/a?b=filter",), "PATH must be like"),
        (("/a=priorities/X",), "there is no verb `priorities`, did you mean `prioritize`?"),
        (("/a=zzz",), "there is no verb `zzz`: known are filter, prioritize, preempt, bind"),
        (("/a=bind/X",), "PLUGIN must be one name, after filter or prioritize"),
        (("/a=filter/",), "PLUGIN must be one name, after filter or prioritize"),
        (("/a=filter", "/a/=bind"), "/a is the path of another alias already"),
        (("/v/filter=bind",), "/v/filter is the path of a verb already"),
        (("/v/filter/NodeName=prioritize/X",), "/v/filter is the path of a verb already"),
    ],
)
async def test_a_bad_alias_is_refused_at_the_start(aliases: tuple[str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        async with serving(extender_prefix="/v/", extender_alias=aliases):
            pass
    assert str(caught.value).startswith(f'--extender-alias is "{aliases[-1]}": ')
    assert problem in str(caught.value)


async def keep_one(call: Cycle) -> Filtered:
    return Filtered(feasible=subset(call, 0))


async def test_calls_are_timed_and_nodes_counted_on_their_way_in_and_out() -> None:
    async with serving(ScriptedCycles(on_filter=keep_one)) as edge:
        await edge.post("/filter", names_args("a", "b", "c"))
        for direction, nodes in (("in", 3), ("out", 1)):
            labels = {"verb": "filter", "direction": direction}
            assert edge.count("moorage_extender_nodes_sum", **labels) == nodes
        of = {"verb": "filter", "result": "ok"}
        assert edge.count("moorage_extender_requests_total", **of) == 1
        assert edge.count("moorage_extender_request_duration_seconds_count", **of) == 1


async def test_every_series_is_there_before_the_first_call() -> None:
    async with serving() as edge:
        for verb in ("filter", "prioritize", "preempt", "bind"):
            labels = {"verb": verb, "result": "timeout"}
            assert edge.registry.get_sample_value("moorage_extender_requests_total", labels) == 0
