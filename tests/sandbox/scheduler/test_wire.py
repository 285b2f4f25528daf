"""What goes over the wire to extenders and back, against recordings of a real kube-scheduler."""

import json
import random
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from moorage_host.kube_scheduler import ExtenderConfig, ExtenderTLS
from moorage_host.kube_scheduler.cache import KnownPod
from moorage_host.kube_scheduler.extender import (
    AnswerError,
    Extender,
    ExtenderError,
    bind_answer,
    bind_body,
    decode_answer,
    filter_answer,
    filter_body,
    preempt_answer,
    preempt_body,
    score_answer,
)
from moorage_host.kube_scheduler.gojson import dumps, node_json, pod_json
from tests.sandbox.scheduler.support import World, known_pod, recordings
from tools.inprocess.certificates import authority, write_folder


@pytest.mark.parametrize("mode", ["names", "nodes"])
def test_filter_and_prioritize_requests_are_written_as_recorded(mode: str) -> None:
    compared = 0
    for verb, _, body in recordings(mode):
        if verb in ("filter", "prioritize"):
            given = json.loads(body)
            nodes = dict.fromkeys(given["NodeNames"] or (), b"")
            items = (given["Nodes"] or {"items": []})["items"]
            nodes |= {node["metadata"]["name"]: node_json(node) for node in items}
            written = filter_body(pod_json(given["Pod"]), nodes, names_only=mode == "names")
            assert written.decode() == body
            compared += 1
    assert compared > 15


def test_bind_requests_are_written_as_recorded() -> None:
    for verb, _, body in recordings("names"):
        if verb == "bind":
            given = json.loads(body)
            metadata = {
                "name": given["PodName"],
                "namespace": given["PodNamespace"],
                "uid": given["PodUID"],
            }
            pod = KnownPod({"metadata": metadata}).pod
            assert bind_body(pod, given["Node"]).decode() == body


@pytest.mark.parametrize("mode", ["names", "nodes"])
def test_preempt_requests_are_written_as_recorded(mode: str) -> None:
    bodies = [body for verb, _, body in recordings(mode) if verb == "preempt"]
    for body in bodies:
        given = json.loads(body)
        nodes = given["NodeNameToMetaVictims"] or given["NodeNameToVictims"]
        victims = {
            node: [
                (pod["UID"], b"") if mode == "names" else (pod["metadata"]["uid"], pod_json(pod))
                for pod in nodes[node]["Pods"]
            ]
            for node in reversed(nodes)
        }
        written = preempt_body(pod_json(given["Pod"]), victims, uids_only=mode == "names")
        assert written.decode() == body
    assert len(bodies) > 1


async def test_headers_are_those_recorded(world: World) -> None:
    (_, recorded, body), *_ = recordings("names")
    async with Extender(ExtenderConfig(url_prefix=world.extender.url + "/")) as extender:
        await extender.call("filter", body.encode())
    (call,) = world.extender.calls
    expected = [(name, value) for name, value in recorded.items() if name != "Host"]
    assert call.headers[0] == ("Host", world.extender.url.removeprefix("http://"))
    assert call.headers[1:] == expected


def test_the_pod_is_written_once_per_state() -> None:
    pod = known_pod()
    assert pod.wire is pod.wire


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b" \n[1] trailing", [1]),
        (b"null", None),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        ('"é\xff"'.encode("latin-1"), "��"),
    ],
)
def test_the_first_json_value_is_what_counts(text: bytes, value: Any) -> None:
    assert decode_answer(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "EOF"),
        (b"  ", "EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b'{"a": ', "unexpected EOF"),
        (b"NaN", "invalid character 'N'"),
        (b"[-Infinity]", "invalid character '-'"),
        (b"\xef\xbb\xbf{}", "invalid character"),
    ],
)
def test_what_go_cannot_read_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(AnswerError) as caught:
        decode_answer(text)
    assert str(caught.value).startswith(problem)


NULLS = {"Nodes": None, "NodeNames": None, "FailedNodes": None, "Error": None}
ANY_CASE = {"nodenames": ["a"], "FAILEDNODES": {"B": "no"}, "node_names": 5}
VICTIMS = {"NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "b"}, {"uid": "a"}]}}}
SCORES = [{"Host": "a", "Score": -5}, {"host": "a", "score": 99}, {"Host": "b", "Score": None}]


@pytest.mark.parametrize(
    ("read", "answer", "found"),
    [
        (filter_answer, ANY_CASE, (["a"], None, {"B": "no"}, {}, "")),
        (filter_answer, None, (None, None, {}, {}, "")),
        (filter_answer, NULLS, (None, None, {}, {}, "")),
        (score_answer, None, []),
        (score_answer, SCORES, [("a", -5), ("a", 99), ("b", 0)]),
        (preempt_answer, {}, {}),
        (preempt_answer, VICTIMS, {"n": ["b", "a"]}),
        (bind_answer, {"Error": None}, ""),
    ],
)
def test_keys_match_in_any_case_and_null_is_the_zero_value(
    read: Callable[[Any], object], answer: Any, found: object
) -> None:
    assert read(answer) == found


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([], "cannot unmarshal array into Go value of type v1.ExtenderFilterResult"),
        ({"NodeNames": "a"}, "cannot unmarshal string into Go struct field"),
        ({"NodeNames": [1]}, "NodeNames of type string"),
        ({"FailedNodes": {"a": 3}}, "cannot unmarshal number 3 into Go struct field FailedNodes"),
        ({"Nodes": {"items": ["a"]}}, "v1.Node"),
        ({"Error": 1}, "Error of type string"),
    ],
)
def test_a_wrong_type_fails_a_filter_answer(answer: Any, problem: str) -> None:
    with pytest.raises(AnswerError) as caught:
        filter_answer(answer)
    assert problem in str(caught.value)


@pytest.mark.parametrize("score", [7.0, 7.5, "7", True, 2**63, [7]])
def test_scores_are_integers_of_64_bits(score: Any) -> None:
    with pytest.raises(AnswerError, match=r"HostPriority\.Score of type int64"):
        score_answer([{"Host": "a", "Score": score}])


@pytest.mark.parametrize("victims", [None, {"Pods": [None]}])
def test_nulls_that_crash_the_real_one_are_refused_with_a_warning(victims: Any) -> None:
    with pytest.raises(AnswerError, match="crashes"):
        preempt_answer({"NodeNameToMetaVictims": {"n": victims}})


@pytest.mark.parametrize(
    ("trusted", "name", "enabled", "problem"),
    [
        pytest.param(True, "gateway.test", True, "", id="both sides are verified"),
        pytest.param(True, "other.test", False, r"other\.test", id="another server's certificate"),
        pytest.param(False, "", True, "", id="without a CA nothing is, as in kube-scheduler"),
        pytest.param(False, "", False, "certificate", id="without a CA and enableHTTPS"),
    ],
)
async def test_certificates(
    tmp_path: Path, trusted: bool, name: str, enabled: bool, problem: str
) -> None:
    folder = write_folder(tmp_path, authority(), "gateway.test")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.crt")
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application()
    app.router.add_post("/filter", _empty)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    tls = ExtenderTLS(
        cert_file=str(folder / "tls.crt"),
        key_file=str(folder / "tls.key"),
        ca_file=str(folder / "ca.crt") if trusted else "",
        server_name=name,
    )
    url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    config = ExtenderConfig(url_prefix=url, enable_https=enabled, tls_config=tls)
    try:
        async with Extender(config) as extender:
            if problem:
                with pytest.raises(ExtenderError, match=problem):
                    await extender.call("filter", b"{}")
            else:
                assert await extender.call("filter", b"{}") == {}
    finally:
        await runner.cleanup()


async def _empty(_: web.Request) -> web.Response:
    return web.json_response({})


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    if isinstance(value, dict):
        keys = rng.sample(sorted(value), len(value))
        return {key: shuffled(value[key], rng) for key in keys}
    return value


@pytest.mark.parametrize("mode", ["names", "nodes"])
def test_pods_and_nodes_are_written_as_kube_scheduler_wrote_them(mode: str) -> None:
    rng = random.Random(1)
    for _, _, body in recordings(mode):
        given = json.loads(body)
        if "Pod" in given:
            assert pod_json(shuffled(given["Pod"], rng)).decode() in body
        for node in (given.get("Nodes") or {"items": []})["items"]:
            assert node_json(shuffled(node, rng)).decode() in body


def test_what_go_leaves_out_is_left_out() -> None:
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "managedFields": [{"manager": "x"}], "labels": None},
        "spec": {"containers": [{"name": "c", "image": "", "ports": []}]},
    }
    assert pod_json(pod) == (
        b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}'
    )


@pytest.mark.parametrize(
    ("written", "part"),
    [
        (
            node_json({"metadata": {"name": "n", "labels": {"b": "", "a": "1"}}}),
            b'"labels":{"a":"1","b":""}',  # empty values stay
        ),
        (
            pod_json({"metadata": {"name": "a"}, "spec": {"novelty": {"b": 1, "a": 2}}}),
            b'"novelty":{"a":2,"b":1}',  # fields of newer versions of Kubernetes stay
        ),
        (
            dumps("<a&b>\u2028\u2029é\n"),
            rb'"\u003ca\u0026b\u003e\u2028\u2029' + 'é\\n"'.encode(),
        ),
    ],
)
def test_what_is_written_as_go_writes_it(written: bytes, part: bytes) -> None:
    assert part in written
