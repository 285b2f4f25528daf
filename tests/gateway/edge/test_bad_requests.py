"""Requests that cannot be understood: the answer names the path to the mistake."""

from typing import Any

import pytest

from tools.inprocess.edge import names_args, node, nodes_args, pod, serving, text

ARGS = names_args("a")
LIST_OF_NODES = nodes_args("a", "b")


def with_pod(**metadata: Any) -> dict[str, Any]:
    return ARGS | {"Pod": pod() | {"metadata": pod()["metadata"] | metadata}}


def with_items(*items: Any) -> dict[str, Any]:
    return LIST_OF_NODES | {"Nodes": {"metadata": {}, "items": list(items)}}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "truncated"),
        ("<html>", "malformed"),
        ("\ufeff" + text(ARGS), "malformed"),
        (text(ARGS) + "garbage", "trailing characters"),
        (text(ARGS)[:-1], "truncated"),
        (text(ARGS)[:-1] + "]", "malformed"),
        (text(ARGS) + "]}", "trailing characters"),
        ("null", "Expected `object`, got `null` - at `$`"),
        ("[]", "Expected `object`, got `array` - at `$`"),
        ("{}", "missing required field `Pod`"),
        ({"Pod": None, "NodeNames": ["a"]}, "- at `$.Pod`"),
        ({"Pod": "web-0", "NodeNames": ["a"]}, "Expected `object`, got `str` - at `$.Pod`"),
        (with_pod(uid=""), "`$.Pod.metadata.uid` is empty"),
        (with_pod(name=""), "`$.Pod.metadata.name` is empty"),
        (with_pod(uid=7), "Expected `str`, got `int` - at `$.Pod.metadata.uid`"),
        (with_pod(labels={"a": 1}), "`$.Pod.metadata.labels[...]`"),
        (ARGS | {"NodeNames": "a"}, "Expected `array`, got `str` - at `$.NodeNames`"),
        (ARGS | {"NodeNames": ["a", 1.5]}, "Expected `str`, got `float` - at `$.NodeNames[1]`"),
        (ARGS | {"NodeNames": ["a", None]}, "Expected `str`, got `null` - at `$.NodeNames[1]`"),
        ('{"Pod":' + text(pod()) + ',"Nodes":null,"NodeNames":[NaN]}', "malformed"),
        (LIST_OF_NODES | {"Nodes": []}, "Expected `object | null`, got `array` - at `$.Nodes`"),
        (with_items(node("a"), 3), "- at `$.Nodes.items[1]`"),
        (with_items(node("a"), {}), "name is empty - at `$.Nodes.items[1].metadata.name`"),
        (with_items({"metadata": {"name": 1}}), "- at `$.Nodes.items[0].metadata.name`"),
    ],
)
async def test_filter_names_the_mistake(body: Any, problem: str) -> None:
    async with serving() as edge:
        answer = await edge.post("/filter", body)
        assert edge.cycles.scheduling == []
        assert edge.count("moorage_extender_requests_total", verb="filter", result="bad_request")
    assert answer.status == 200
    assert answer.json["Error"].startswith("moorage: the request was not understood: ")
    assert problem in answer.json["Error"]
    assert answer.json["NodeNames"] is None


@pytest.mark.parametrize("body", ["", "[]", '{"PodName":1}', "\ufeff{}", '{"Node":NaN}'])
async def test_bind_reports_it_in_its_error_field(body: str) -> None:
    async with serving() as edge:
        answer = await edge.post("/bind", body)
        assert edge.cycles.binds == []
    assert answer.status == 200
    assert answer.json["Error"].startswith("moorage: the request was not understood: ")


DEEP = '{"a":' * 20_000 + "1" + "}" * 20_000


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        '{"Pod":' + DEEP + ',"NodeNames":["a"]}',
        '{"Pod":' + text(pod())[:-1] + ',"more":' + DEEP + '},"Nodes":null,"NodeNames":["a"]}',
        '{"Pod":' + text(pod()) + ',"Nodes":{"items":[' + DEEP + "]}}",
        '{"Pod":null,"NodeNames":' + "[" * 20_000 + "]" * 20_000 + "}",
        text({"x" * 100_000: 1}),
        text(ARGS | {"x" * 100_000: 1}),
    ],
    ids=["body", "pod", "in pod", "node", "names", "key", "more"],
)
@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
async def test_deep_and_long_bodies_are_refused_in_a_few_words(
    verb: str, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving() as edge:
        answer = await edge.post(f"/{verb}", body)
        assert not edge.count("moorage_extender_requests_total", verb=verb, result="internal")
    assert answer.status in (200, 400)
    assert len(answer.body) < 1000
    assert len("".join(capsys.readouterr())) < 1000


async def test_nodes_that_the_answer_would_repeat_are_text() -> None:
    body = text(nodes_args("a")).encode().replace(b'"spec":{},"status"', b'"x":"\xff","status"')
    assert b"\xff" in body
    async with serving() as edge:
        answer = await edge.post("/filter", body)
    assert "utf-8" in answer.json["Error"]


async def test_names_that_are_not_text_are_refused_although_the_bytes_look_like_go_s() -> None:
    body = b'{"Pod":' + text(pod()).encode() + b',"Nodes":null,"NodeNames":["\xff"]}'
    async with serving() as edge:
        answer = await edge.post("/filter", body)
    assert "at `$.NodeNames" in answer.json["Error"]


async def test_the_same_mistake_has_the_same_words_every_time() -> None:
    async with serving() as edge:
        answers = [(await edge.post("/filter", with_pod(uid=7))).body for _ in range(2)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("body", "reason"), [("{", "malformed"), ("{}", "invalid"), (" " * 3000, "too_large")]
)
async def test_what_is_wrong_is_counted_by_kind(body: str, reason: str) -> None:
    async with serving(body_limit=2000) as edge:
        await edge.post("/filter", body)
        counted = edge.count("moorage_extender_bad_requests_total", verb="filter", reason=reason)
    assert counted == 1
