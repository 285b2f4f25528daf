"""Each fault of an extender is found by the check for it, and by no other."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from cli.conformance.requests import Requests
from moorage_host.kube_scheduler import ExtenderConfig
from tests.cli.conformance.extender import (
    TOO_OLD,
    Change,
    Extender,
    Handler,
    Object,
    names,
    serving_beside,
)
from tests.cli.conformance.running import Report, checked

LARGE = "http_large"
SMALL = "not http_large and not 1.30 and not 1.36"
ALL_BUT_LARGE = "not http_large"


def check(extender: Extender, select: str = SMALL, *, slow: bool = False, **entry: Any) -> Report:
    """Run some checks, by default those with small bodies, and one recording."""
    with serving_beside(extender, **entry) as config:
        report = checked(Requests(config=config), "-k", select, slow=slow)
    assert report.code == (1 if report.failed else 0)
    return report


def found(report: Report) -> set[str]:
    """Return what failed, and with a question mark what was warned of."""
    return {*report.failed, *(f"{each}?" for each in report.warned)}


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
def test_nothing_is_found_where_nothing_is_wrong(names_only: bool) -> None:
    report = check(Extender(), ALL_BUT_LARGE, node_cache_capable=names_only)
    assert found(report) == set()
    assert report.skipped == {"http-idle"}


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


FILTER: Mapping[str, tuple[Change, set[str]]] = {
    "an empty object": (no_survivor, {"filter-field"}),
    "the other field": (in_nodes, {"filter-field"}),
    "an invented node": (one_more, {"filter-subset"}),
    "no reasons": (changed(FailedAndUnresolvableNodes=None), {"filter-accounts"}),
    "kept and rejected": (kept_too, {"filter-accounts"}),
    "kept twice": (twice, {"filter-accounts"}),
    "the node in its reason": (with_reason, {"filter-short-reasons?"}),
    "FailedNodes": (in_failed, {"filter-unresolvable?"}),
    "unstable reasons": (Unstable(), {"filter-unknown-node?"}),
    "Error for a node that is not known": (
        error_for_unknown,
        {"filter-unknown-node"},
    ),
    "a reason that is no text": (
        lambda _, answer: {**answer, "FailedNodes": {"worker-5": 3}},
        {"filter-decodes"},
    ),
}
PRIORITIZE: Mapping[str, tuple[Change, set[str]]] = {
    "an object": (lambda _, answer: {"Scores": answer}, {"prioritize-decodes"}),
    "floats": (
        scores(lambda e: {**e, "Score": 7.5}),
        {"prioritize-decodes"},
    ),
    "texts": (scores(lambda e: {**e, "Score": "7"}), {"prioritize-decodes"}),
    "percentages": (scores(lambda e: {**e, "Score": 100}), {"prioritize-range"}),
    "negative": (scores(lambda e: {**e, "Score": -1}), {"prioritize-range"}),
    "an unknown host": (
        lambda _, answer: [*answer, {"Host": "invented", "Score": 1}],
        {"prioritize-hosts"},
    ),
    "a host twice": (lambda _, answer: [*answer, answer[0]], {"prioritize-hosts"}),
    "a host less": (lambda _, answer: answer[1:], {"prioritize-missing-hosts?"}),
}
PREEMPT: Mapping[str, tuple[Change, set[str]]] = {
    "null victims": (of_victims(lambda of: None), {"preempt-decodes"}),
    "a null victim": (of_victims(lambda of: {"Pods": [None]}), {"preempt-decodes"}),
    "the field of the request": (
        lambda args, _: {"NodeNameToVictims": args["nodenametometavictims"]},
        {"preempt-field"},
    ),
    "another node": (other_candidate, {"preempt-victims"}),
    "another victim": (
        of_victims(lambda of: {"Pods": [*of["Pods"], {"UID": "other"}]}),
        {"preempt-victims"},
    ),
    "no victims": (of_victims(lambda of: {"Pods": []}), {"preempt-victims"}),
    "victims reversed": (
        of_victims(lambda of: {"Pods": of["Pods"][::-1]}),
        {"preempt-victims"},
    ),
    "a list": (lambda _, answer: [], {"preempt-decodes"}),
}
BIND: Mapping[str, tuple[Change, set[str]]] = {
    "success without a bind": (
        lambda *_: {"Error": ""},
        {"bind-missing-pod", "bind-concurrent"},
    ),
    "an Error that is no text": (lambda *_: {"Error": {}}, {"bind-decodes"}),
}
ANSWERS = {"filter": FILTER, "prioritize": PRIORITIZE, "preempt": PREEMPT, "bind": BIND}


@pytest.mark.parametrize(
    ("verb", "fault"), [(verb, fault) for verb, faults in ANSWERS.items() for fault in faults]
)
def test_a_wrong_answer_is_found_by_its_check(verb: str, fault: str) -> None:
    change, expected = ANSWERS[verb][fault]
    report = check(Extender(changes={verb: change}))
    assert found(report) == expected


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
def test_recorded_requests_are_about_the_given_nodes_alone(names_only: bool) -> None:
    config = ExtenderConfig(url_prefix="http://h:1", node_cache_capable=names_only)
    requests = Requests(config=config, nodes=("a", "b"))
    for version in requests.versions():
        for each in requests.recorded(version, "filter", "prioritize", "preempt"):
            assert set(each.victims if each.verb == "preempt" else each.names) <= {"a", "b"}


def test_a_node_that_lacks_fields_is_found() -> None:
    def without_status(_: Object, answer: Object) -> Object:
        given = (answer["Nodes"] or {}).get("items", ())
        items = [{"metadata": item["metadata"]} for item in given]
        return {**answer, "Nodes": {"items": items}}

    report = check(Extender(changes={"filter": without_status}), node_cache_capable=False)
    assert found(report) == {"filter-nodes-as-sent"}


def test_names_in_answer_to_whole_nodes_are_found() -> None:
    def by_name(args: Object, answer: Object) -> Object:
        return {**answer, "Nodes": None, "NodeNames": names(args)}

    report = check(Extender(changes={"filter": by_name}), node_cache_capable=False)
    assert found(report) == {"filter-field"}


def test_an_error_is_no_rejection() -> None:
    def fail(*_: object) -> Object:
        return {"Error": TOO_OLD}

    report = check(Extender(changes={"filter": fail}))
    assert "takes Error as a failed call, not as a rejection" in report.failed["recorded[1.37]"]


def test_what_fails_open_is_said() -> None:
    report = check(Extender(changes={"filter": lambda *_: []}), ignorable=True)
    assert found(report) == {"filter-decodes"}
    assert "skips the extender, since it is ignorable" in report.failed["filter-decodes"]


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


WIRE: Mapping[str, tuple[Any, set[str]]] = {
    "empty victims": (refuse_empty_victims, {"preempt-empty-victims"}),
    "unknown fields": (refuse_unknown_fields, {"http-unknown-fields"}),
    "no labels": (want_labels, {"http-minimal-pod"}),
    "not only ASCII": (want_ascii, {"http-escapes"}),
    "null": (die_of_null, {"http-malformed?"}),
    "a redirect": (redirect, set()),
    "closed connections": (close, {"http-connections?"}),
    "chunks": (chunk, {"http-connections?"}),
    "prioritize without filter": (forget_unfiltered, {"prioritize-unfiltered"}),
    "many binds": (TooMany("bind"), {"bind-concurrent"}),
    "a bind again": (Alternating(), {"bind-missing-pod"}),
}


@pytest.mark.parametrize("fault", WIRE)
def test_a_wrong_reaction_is_found_by_its_check(fault: str) -> None:
    wrong, expected = WIRE[fault]
    assert found(check(Extender(wrong=wrong))) == expected


def test_a_limit_for_bodies_is_found() -> None:
    limited = check(Extender(body_limit=2**20), LARGE)
    assert found(limited) == {"http-large-pod"}
    limited = check(Extender(body_limit=10 * 2**20), LARGE, node_cache_capable=False)
    assert found(limited) == {"http-large-cluster"}


def test_a_slow_answer_is_found() -> None:
    async def slow(request: web.Request, right: Handler) -> web.StreamResponse:
        if "moorage-conformance-minimal" in await request.text():
            await asyncio.Event().wait()
        return await right(request)

    report = check(Extender(wrong=slow), "http_minimal_pod", http_timeout="700ms")
    assert found(report) == {"http-minimal-pod"}
    assert "context deadline exceeded" in report.failed["http-minimal-pod"]


def test_idle_connections_that_are_closed_are_found() -> None:
    extender = Extender(options={"keepalive_timeout": 1.0})
    report = check(extender, "http_idle", slow=True)
    assert found(report) == {"http-idle"}


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

    report = check(Extender(wrong=block), "http_abandoned", http_timeout="2s")
    assert found(report) == {"http-abandoned"}


def test_too_few_callers_at_the_same_time_are_found() -> None:
    report = check(Extender(wrong=TooMany("filter")), "http_concurrent")
    assert found(report) == {"http-concurrent"}


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
def test_large_bodies_are_fine_where_nothing_is_wrong(names_only: bool) -> None:
    assert found(check(Extender(), LARGE, node_cache_capable=names_only)) == set()
