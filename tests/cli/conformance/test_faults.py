"""Each fault of an extender is found by the check for it, and by no other."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from cli.conformance.findings import Severity
from cli.conformance.kit import Kit
from cli.conformance.requests import Requests
from sandbox.scheduler.config import ManagedResource
from tests.cli.conformance.extender import (
    TOO_OLD,
    Change,
    Extender,
    Handler,
    Object,
    names,
    serving_beside,
)

BREAKS, WRONG, IGNORED, STYLE = Severity


LARGE = "http_large"
SMALL = "not http_large and not recorded-1.30 and not recorded-1.36"
ALL_BUT_LARGE = "not http_large"


def check(extender: Extender, select: str = SMALL, *, slow: bool = False, **entry: Any) -> Kit:
    """Run some checks, by default those with small bodies, and one recording."""
    with serving_beside(extender, **entry) as config:
        kit = Kit(requests=[Requests(config=config)], slow=slow)
        code = kit.run("-k", select)
    assert code == (0 if set(found(kit).values()) <= {STYLE} else 1)
    return kit


def found(kit: Kit) -> dict[str, Severity]:
    return {check: findings[0].severity for check, findings in kit.found.items()}


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
def test_nothing_is_found_where_nothing_is_wrong(names_only: bool) -> None:
    kit = check(Extender(), ALL_BUT_LARGE, node_cache_capable=names_only)
    assert found(kit) == {}
    assert kit.skipped.keys() == {"http-not-managed", "http-idle"}
    assert kit.sent["prioritize"] > 30


def first(victims: Object) -> Object:
    return {"NodeNameToMetaVictims": victims}


def changed(**fields: Any) -> Change:
    return lambda _, answer: {**answer, **fields}


def scores(change: Any) -> Change:
    return lambda _, answer: [change(entry) for entry in answer]


def of_victims(change: Any) -> Change:
    """Return a change of the victims on each node."""

    def made(_: Object, answer: Object) -> Object:
        given = answer["NodeNameToMetaVictims"].items()
        return {"NodeNameToMetaVictims": {node: change(of) for node, of in given}}

    return made


def with_reason(args: Object, answer: Object) -> Object:
    reasons = {name: f"{name} is too old" for name in answer["FailedAndUnresolvableNodes"]}
    return {**answer, "FailedAndUnresolvableNodes": reasons}


def in_failed(_: Object, answer: Object) -> Object:
    reasons = answer["FailedAndUnresolvableNodes"]
    return {**answer, "FailedAndUnresolvableNodes": None, "FailedNodes": reasons}


def in_nodes(args: Object, answer: Object) -> Object:
    items = [{"metadata": {"name": name}} for name in answer["NodeNames"]]
    return {**answer, "NodeNames": None, "Nodes": {"items": items}}


def kept_too(_: Object, answer: Object) -> Object:
    kept = [*answer["NodeNames"], *answer["FailedAndUnresolvableNodes"]]
    return {**answer, "NodeNames": kept}


def one_more(_: Object, answer: Object) -> Object:
    return {**answer, "NodeNames": [*answer["NodeNames"], "invented"]}


def twice(_: Object, answer: Object) -> Object:
    return {**answer, "NodeNames": answer["NodeNames"] * 2}


def error_for_unknown(args: Object, answer: Object) -> Object:
    is_known = all(name.startswith("worker") for name in names(args))
    return answer if is_known else {**answer, "Error": "unknown node"}


class Unstable:
    """Gives a rejection another reason in each call."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, _: Object, answer: Object) -> Object:
        self._count += 1
        rejected = dict.fromkeys(answer["FailedAndUnresolvableNodes"], f"no. {self._count}")
        return {**answer, "FailedAndUnresolvableNodes": rejected}


def other_candidate(_: Object, answer: Object) -> Object:
    return first({"invented": {"Pods": [{"UID": "x"}]}})


def no_survivor(_: Object, answer: Object) -> Object:
    return {}


FILTER: Mapping[str, tuple[Change, dict[str, Severity]]] = {
    "an empty object": (no_survivor, {"filter-field": BREAKS}),
    "the other field": (in_nodes, {"filter-field": WRONG}),
    "an invented node": (one_more, {"filter-subset": BREAKS}),
    "no reasons": (changed(FailedAndUnresolvableNodes=None), {"filter-reasons": IGNORED}),
    "kept and rejected": (kept_too, {"filter-both": WRONG}),
    "kept twice": (twice, {"filter-duplicates": STYLE}),
    "the node in its reason": (with_reason, {"filter-grouped-reasons": STYLE}),
    "FailedNodes": (in_failed, {"filter-unresolvable": STYLE}),
    "unstable reasons": (Unstable(), {"filter-repeated": STYLE}),
    "Error for a node that is not known": (
        error_for_unknown,
        {"filter-unknown-node": BREAKS},
    ),
    "a reason that is no text": (
        lambda _, answer: {**answer, "FailedNodes": {"worker-5": 3}},
        {"filter-decodes": BREAKS},
    ),
}
PRIORITIZE: Mapping[str, tuple[Change, dict[str, Severity]]] = {
    "an object": (lambda _, answer: {"Scores": answer}, {"prioritize-decodes": IGNORED}),
    "floats": (
        scores(lambda e: {**e, "Score": 7.5}),
        {"prioritize-integers": IGNORED},
    ),
    "texts": (scores(lambda e: {**e, "Score": "7"}), {"prioritize-integers": IGNORED}),
    "percentages": (scores(lambda e: {**e, "Score": 100}), {"prioritize-range": WRONG}),
    "negative": (scores(lambda e: {**e, "Score": -1}), {"prioritize-range": WRONG}),
    "an unknown host": (
        lambda _, answer: [*answer, {"Host": "invented", "Score": 1}],
        {"prioritize-unknown-hosts": IGNORED},
    ),
    "a host twice": (lambda _, answer: [*answer, answer[0]], {"prioritize-duplicates": WRONG}),
    "a host less": (lambda _, answer: answer[1:], {"prioritize-missing-hosts": STYLE}),
}
PREEMPT: Mapping[str, tuple[Change, dict[str, Severity]]] = {
    "null victims": (of_victims(lambda of: None), {"preempt-null": BREAKS}),
    "a null victim": (of_victims(lambda of: {"Pods": [None]}), {"preempt-null": BREAKS}),
    "the field of the request": (
        lambda args, _: {"NodeNameToVictims": args["nodenametometavictims"]},
        {"preempt-field": BREAKS},
    ),
    "another node": (other_candidate, {"preempt-candidates": WRONG}),
    "another victim": (
        of_victims(lambda of: {"Pods": [*of["Pods"], {"UID": "other"}]}),
        {"preempt-victims": BREAKS},
    ),
    "no victims": (of_victims(lambda of: {"Pods": []}), {"preempt-victims": BREAKS}),
    "victims reversed": (
        of_victims(lambda of: {"Pods": of["Pods"][::-1]}),
        {"preempt-order": WRONG},
    ),
    "a list": (lambda _, answer: [], {"preempt-decodes": BREAKS}),
}
BIND: Mapping[str, tuple[Change, dict[str, Severity]]] = {
    "success without a bind": (lambda *_: {"Error": ""}, {"bind-missing-pod": BREAKS}),
    "an Error that is no text": (lambda *_: {"Error": {}}, {"bind-decodes": BREAKS}),
}
ANSWERS = {"filter": FILTER, "prioritize": PRIORITIZE, "preempt": PREEMPT, "bind": BIND}


@pytest.mark.parametrize(
    ("verb", "fault"), [(verb, fault) for verb, faults in ANSWERS.items() for fault in faults]
)
def test_a_wrong_answer_is_found_by_its_check(verb: str, fault: str) -> None:
    change, expected = ANSWERS[verb][fault]
    kit = check(Extender(changes={verb: change}))
    assert found(kit) == expected


def test_a_node_that_lacks_fields_is_found() -> None:
    def without_status(_: Object, answer: Object) -> Object:
        given = (answer["Nodes"] or {}).get("items", ())
        items = [{"metadata": item["metadata"]} for item in given]
        return {**answer, "Nodes": {"items": items}}

    kit = check(Extender(changes={"filter": without_status}), node_cache_capable=False)
    assert found(kit) == {"filter-nodes-as-sent": WRONG}


def test_names_in_answer_to_whole_nodes_are_found() -> None:
    def by_name(args: Object, answer: Object) -> Object:
        return {**answer, "Nodes": None, "NodeNames": names(args)}

    kit = check(Extender(changes={"filter": by_name}), node_cache_capable=False)
    assert found(kit) == {"filter-field": BREAKS}


def test_an_error_is_no_rejection() -> None:
    def fail(*_: object) -> Object:
        return {"Error": f"{TOO_OLD}: 100 %"}

    kit = check(Extender(changes={"filter": fail}))
    assert found(kit)["filter-error"] == BREAKS
    consequences = {f.versions: f.consequence for each in kit.found.values() for f in each}
    assert "format string" in consequences["1.30"]


def test_what_fails_open_is_a_wrong_placement() -> None:
    kit = check(Extender(changes={"filter": no_survivor}), ignorable=True)
    assert found(kit) == {"filter-field": BREAKS}
    kit = check(Extender(changes={"filter": lambda *_: []}), ignorable=True)
    assert found(kit) == {"filter-decodes": WRONG}


async def refuse_empty_victims(request: web.Request, right: Handler) -> web.StreamResponse:
    body = await request.text()
    if request.path == "/preempt" and ('"Pods":[]' in body or '"Pods":null' in body):
        return web.Response(status=500)
    return await right(request)


async def refuse_unknown_fields(request: web.Request, right: Handler) -> web.StreamResponse:
    is_newer = "NewerArgument" in await request.text()
    return web.Response(status=400) if is_newer else await right(request)


async def want_labels(request: web.Request, right: Handler) -> web.StreamResponse:
    if '"labels":null' in await request.text():
        return web.Response(status=500)
    return await right(request)


async def want_ascii(request: web.Request, right: Handler) -> web.StreamResponse:
    is_text = "moorage-conformance-text" in await request.text()
    if is_text and not (await request.read()).isascii():
        return web.Response(status=500)
    return await right(request)


async def die_of_null(request: web.Request, right: Handler) -> web.StreamResponse:
    if await request.text() == "null":
        return cut(request)
    return await right(request)


async def redirect(request: web.Request, right: Handler) -> web.StreamResponse:
    if "again" not in request.query:
        return web.Response(status=307, headers={"Location": f"{request.path}?again=1"})
    return await right(request)


async def close(request: web.Request, right: Handler) -> web.StreamResponse:
    answer = await right(request)
    answer.headers["Connection"] = "close"
    return answer


async def chunk(request: web.Request, right: Handler) -> web.StreamResponse:
    answer = await right(request)
    answer.enable_chunked_encoding()
    return answer


async def reject_unmanaged(request: web.Request, right: Handler) -> web.StreamResponse:
    is_unmanaged = "moorage-conformance-not-managed" in await request.text()
    return web.Response(status=500) if is_unmanaged else await right(request)


async def forget_unfiltered(request: web.Request, right: Handler) -> web.StreamResponse:
    is_unfiltered = "moorage-conformance-unfiltered" in await request.text()
    return web.Response(status=500) if is_unfiltered else await right(request)


def cut(request: web.Request) -> web.StreamResponse:
    """Close the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


class TooMany:
    """Fails while several calls are at work."""

    def __init__(self, verb: str) -> None:
        self._verb, self._count = verb, 0

    async def __call__(self, request: web.Request, right: Handler) -> web.StreamResponse:
        if request.match_info["verb"] != self._verb:
            return await right(request)
        self._count += 1
        try:
            if self._count > 2:
                return web.Response(status=503)
            await asyncio.sleep(0.01)
            return await right(request)
        finally:
            self._count -= 1


class Alternating:
    """Binds every other pod."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    async def __call__(self, request: web.Request, right: Handler) -> web.StreamResponse:
        body = await request.text()
        if request.path == "/bind" and body in self._seen:
            return web.json_response({"Error": ""})
        self._seen.add(body)
        return await right(request)


WIRE: Mapping[str, tuple[Any, dict[str, Severity]]] = {
    "empty victims": (refuse_empty_victims, {"preempt-empty-victims": BREAKS}),
    "unknown fields": (refuse_unknown_fields, {"http-unknown-fields": BREAKS}),
    "no labels": (want_labels, {"http-minimal-pod": BREAKS}),
    "not only ASCII": (want_ascii, {"http-escapes": BREAKS}),
    "null": (die_of_null, {"http-malformed": STYLE}),
    "a redirect": (redirect, {"http-redirect": STYLE}),
    "closed connections": (close, {"http-keep-alive": STYLE}),
    "chunks": (chunk, {"http-framing": STYLE}),
    "prioritize without filter": (forget_unfiltered, {"prioritize-unfiltered": IGNORED}),
    "many binds": (TooMany("bind"), {"bind-concurrent": BREAKS}),
    "a bind again": (Alternating(), {"bind-repeated": BREAKS, "bind-missing-pod": BREAKS}),
}


@pytest.mark.parametrize("fault", WIRE)
def test_a_wrong_reaction_is_found_by_its_check(fault: str) -> None:
    wrong, expected = WIRE[fault]
    assert found(check(Extender(wrong=wrong))) == expected


def test_a_limit_for_bodies_is_found() -> None:
    limited = check(Extender(body_limit=2**20), LARGE)
    assert found(limited) == {"http-large-pod": BREAKS}
    limited = check(Extender(body_limit=10 * 2**20), LARGE, node_cache_capable=False)
    assert found(limited) == {"http-large-cluster": BREAKS}


def test_pods_that_are_not_managed_are_found() -> None:
    resources = (ManagedResource("example.com/fpga"),)
    kit = check(Extender(), managed_resources=resources)
    assert found(kit) == {"http-not-managed": STYLE}  # it rejects worker-5
    kit = check(Extender(wrong=reject_unmanaged), managed_resources=resources)
    assert found(kit) == {"http-not-managed": STYLE}


def test_a_slow_answer_is_found() -> None:
    async def slow(request: web.Request, right: Handler) -> web.StreamResponse:
        if "moorage-conformance-minimal" in await request.text():
            await asyncio.Event().wait()
        return await right(request)

    kit = check(Extender(wrong=slow), "http_minimal_pod", http_timeout="700ms")
    assert found(kit) == {"http-minimal-pod": BREAKS}
    (finding,) = kit.found["http-minimal-pod"]
    assert "context deadline exceeded" in finding.got


def test_idle_connections_that_are_closed_are_found() -> None:
    extender = Extender(options={"keepalive_timeout": 1.0})
    kit = check(extender, "http_idle", slow=True)
    assert found(kit) == {"http-idle": BREAKS}


def test_calls_that_block_after_their_caller_went_are_found() -> None:
    lock = asyncio.Lock()

    async def block(request: web.Request, right: Handler) -> web.StreamResponse:
        assert request.transport is not None
        await lock.acquire()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                while not request.transport.is_closing():  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0)
        answer = await right(request)
        if not request.transport.is_closing():
            lock.release()
        return answer

    kit = check(Extender(wrong=block), "http_abandoned", http_timeout="2s")
    assert found(kit) == {"http-abandoned": BREAKS}


def test_too_few_callers_at_the_same_time_are_found() -> None:
    kit = check(Extender(wrong=TooMany("filter")), "http_concurrent")
    assert found(kit) == {"http-concurrent": BREAKS}


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
def test_large_bodies_are_fine_where_nothing_is_wrong(names_only: bool) -> None:
    assert found(check(Extender(), LARGE, node_cache_capable=names_only)) == {}
