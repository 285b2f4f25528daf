"""What goes over the wire to extenders and back, against recordings of a real kube-scheduler."""

import json
import random
import ssl
import subprocess
from collections.abc import AsyncIterator
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
from tests.needs import needed
from tests.sandbox.scheduler.support import World, known_pod, recordings
from tools.waiting import until


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


async def test_a_pod_from_the_api_server_is_sent_as_kube_scheduler_sends_it(world: World) -> None:
    (_, _, body), *_ = recordings("names")
    recorded = json.loads(body)["Pod"]
    for name in ("worker-0", "worker-1"):
        world.node(name)
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            key: recorded["metadata"][key] for key in ("annotations", "labels", "namespace", "name")
        },
        "spec": {"schedulerName": "moorage", "containers": [{"image": "nginx:1.7.9", "name": "c"}]},
    }
    world.api.create("/api/v1/namespaces/default/pods", document)
    async with world.scheduler({"filterVerb": "filter", "nodeCacheCapable": True}):
        await until(lambda: world.extender.calls)
    sent = world.extender.calls[0].body.decode()
    ours, theirs = _skeleton(sent), _skeleton(body)
    theirs["NodeNames"] = ours["NodeNames"]
    assert json.dumps(ours) == json.dumps(theirs)


def _skeleton(body: str) -> dict[str, object]:
    """Take out what differs from cluster to cluster, keeping the order of all keys."""
    given: dict[str, object] = json.loads(body.replace('"rec"', '"moorage"'))
    pod = given["Pod"]
    assert isinstance(pod, dict)
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        pod["metadata"][key] = key
    for key in ("serviceAccountName", "serviceAccount"):  # the recorded cluster had no accounts
        pod["spec"].pop(key, None)
    return given


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


def test_keys_match_in_any_case_and_unknown_ones_are_ignored() -> None:
    answer = filter_answer({"nodenames": ["a"], "FAILEDNODES": {"B": "no"}, "node_names": 5})
    assert (answer.names, answer.failed, answer.nodes) == (["a"], {"B": "no"}, None)


def test_null_is_the_zero_value_everywhere() -> None:
    nothing = filter_answer(None)
    nulls = {"Nodes": None, "NodeNames": None, "FailedNodes": None, "Error": None}
    assert filter_answer(nulls) == nothing == (None, None, {}, {}, "")
    assert score_answer(None) == []
    assert score_answer([{"Host": "a", "Score": None}]) == [("a", 0)]
    assert preempt_answer({}) == {}
    assert bind_answer({"Error": None}) == ""


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


def test_any_other_integer_is_a_score() -> None:
    given = [{"Host": "a", "Score": -5}, {"host": "a", "score": 99}, {"Host": "b"}]
    assert score_answer(given) == [("a", -5), ("a", 99), ("b", 0)]


@pytest.mark.parametrize("victims", [None, {"Pods": [None]}])
def test_nulls_that_crash_the_real_one_are_refused_with_a_warning(victims: Any) -> None:
    with pytest.raises(AnswerError, match="crashes"):
        preempt_answer({"NodeNameToMetaVictims": {"n": victims}})


def test_victims_keep_their_order() -> None:
    pods = [{"UID": "b"}, {"uid": "a"}]
    assert preempt_answer({"NodeNameToMetaVictims": {"n": {"Pods": pods}}}) == {"n": ["b", "a"]}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate for gateway.test that signs itself; its key is beside it."""
    openssl = needed("openssl")
    path = tmp_path_factory.mktemp("tls") / "cert.pem"
    name = ("-subj", "/CN=gateway.test", "-addext", "subjectAltName=DNS:gateway.test")
    files = ("-keyout", str(path.with_suffix(".key")), "-out", str(path))
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run(
        [openssl, "req", *kind, *name, *files], check=True, capture_output=True, timeout=60
    )
    return path


@pytest.fixture
async def url(certificate: Path) -> AsyncIterator[str]:
    """Serve an extender that demands a client certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificate))
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application()
    app.router.add_post("/filter", _empty)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def _empty(_: web.Request) -> web.Response:
    return web.json_response({})


def tls(certificate: Path, *, trusted: bool = True, name: str = "gateway.test") -> ExtenderTLS:
    return ExtenderTLS(
        cert_file=str(certificate),
        key_file=str(certificate.with_suffix(".key")),
        ca_file=str(certificate) if trusted else "",
        server_name=name,
    )


async def test_both_sides_are_verified(url: str, certificate: Path) -> None:
    config = ExtenderConfig(url_prefix=url, enable_https=True, tls_config=tls(certificate))
    async with Extender(config) as extender:
        assert await extender.call("filter", b"{}") == {}


async def test_another_servers_certificate_is_refused(url: str, certificate: Path) -> None:
    config = ExtenderConfig(url_prefix=url, tls_config=tls(certificate, name="other.test"))
    async with Extender(config) as extender:
        with pytest.raises(ExtenderError, match=r"other\.test"):
            await extender.call("filter", b"{}")


async def test_without_a_ca_https_verifies_nothing_as_in_kube_scheduler(
    url: str, certificate: Path
) -> None:
    unverified = tls(certificate, trusted=False, name="")
    config = ExtenderConfig(url_prefix=url, enable_https=True, tls_config=unverified)
    async with Extender(config) as extender:
        assert await extender.call("filter", b"{}") == {}
    config = ExtenderConfig(url_prefix=url, enable_https=False, tls_config=unverified)
    async with Extender(config) as extender:
        with pytest.raises(ExtenderError, match="certificate"):
            await extender.call("filter", b"{}")


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


def test_empty_values_of_labels_stay() -> None:
    node = {"metadata": {"name": "n", "labels": {"b": "", "a": "1"}}}
    assert b'"labels":{"a":"1","b":""}' in node_json(node)


def test_fields_of_newer_kubernetes_versions_are_kept() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [], "novelty": {"b": 1, "a": 2}}}
    assert b'"novelty":{"a":2,"b":1}' in pod_json(pod)


def test_html_and_line_separators_are_escaped() -> None:
    assert dumps("<a&b>\u2028\u2029é\n") == rb'"\u003ca\u0026b\u003e\u2028\u2029' + 'é\\n"'.encode()
