"""Queries, settings and limits of the client of Prometheus."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage import ConfigurationError, Pod
from moorage.measurements import (
    PrometheusError,
    PrometheusSettings,
    quoted,
    time_range,
)
from moorage.measurements.prometheus.client import query
from moorage.measurements.risk import Limits
from moorage.models import Container, Resources
from moorage.testing import make_node, make_nodes, make_pod
from moorage_host.policy.checks import check_arguments
from tests.fake_prometheus import FakePrometheus, fake_prometheus
from tests.needs import needed


@pytest.fixture
async def prometheus() -> AsyncIterator[FakePrometheus]:
    async with fake_prometheus() as fake:
        fake.answer = lambda text: [({"node": "n1"}, 1.5), ({"node": "n2"}, "+Inf")]
        yield fake


async def test_a_query_is_posted_as_a_form(prometheus: FakePrometheus) -> None:
    samples = await query(prometheus.settings(), 'up{a="b"} > 0')
    assert [(s.metric["node"], s.number) for s in samples] == [("n1", 1.5), ("n2", float("inf"))]
    ((method, path, form, headers),) = prometheus.requests
    assert (method, path, form) == ("POST", "/api/v1/query", {"query": 'up{a="b"} > 0'})
    assert "Authorization" not in headers


@pytest.mark.parametrize("status", [403, 405, 501])
async def test_a_server_that_takes_no_post_is_asked_by_get(
    prometheus: FakePrometheus, status: int
) -> None:
    prometheus.allows_post, prometheus.refuses_post_with = False, status
    assert len(await query(prometheus.settings(), "a + b")) == 2
    methods = [(method, form) for method, _, form, _ in prometheus.requests]
    assert methods == [("POST", {"query": "a + b"}), ("GET", {"query": "a + b"})]


async def test_a_token_is_read_for_each_query(prometheus: FakePrometheus, tmp_path: Path) -> None:
    token = tmp_path / "token"
    settings = prometheus.settings(bearer_token_file=str(token))
    for text in ("first\n", "second"):
        token.write_text(text)
        await query(settings, "up")
    sent = [headers["Authorization"] for *_, headers in prometheus.requests]
    assert sent == ["Bearer first", "Bearer second"]
    token.unlink()
    with pytest.raises(PrometheusError, match="No such file"):
        await query(settings, "up")


async def test_a_user_and_a_password_are_sent(prometheus: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("sesame\n")
    settings = prometheus.settings(username="ali", password_file=str(tmp_path / "password"))
    await query(settings, "up")
    assert prometheus.requests[0][3]["Authorization"] == "Basic YWxpOnNlc2FtZQ=="


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (400, None, "HTTP status 400, bad_data: no such thing"),
        (503, b"<html>", "HTTP status 503, and no answer of Prometheus"),
        (302, b"", "HTTP status 302, and no answer of Prometheus"),
        (200, b'{"status":"success"}', "HTTP status 200"),
        (
            200,
            b'{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}',
            "the result is a scalar, not a vector",
        ),
        (
            200,
            b'{"status":"success","data":{"resultType":"vector","result":[{"metric":1}]}}',
            "the result is not understood",
        ),
        (200, b"x" * 2000, "more than maxAnswerBytes"),
    ],
)
async def test_anything_but_a_vector_is_an_error(
    prometheus: FakePrometheus, status: int, body: bytes | None, problem: str
) -> None:
    prometheus.status, prometheus.body = status, body
    with pytest.raises(PrometheusError) as error:
        await query(prometheus.settings(max_answer_bytes=1024), "up")
    assert str(error.value).startswith(f"cannot query Prometheus at {prometheus.address}: ")
    assert problem in str(error.value)


async def test_a_redirection_is_an_error_so_that_no_token_goes_elsewhere(
    prometheus: FakePrometheus,
) -> None:
    async with fake_prometheus() as elsewhere:
        prometheus.redirects_to = f"{elsewhere.address}/api/v1/query"
        with pytest.raises(PrometheusError, match="HTTP status 302"):
            await query(prometheus.settings(), "up")
        assert elsewhere.requests == []


async def test_silence_is_an_error_after_the_timeout(prometheus: FakePrometheus) -> None:
    prometheus.stuck = True
    with pytest.raises(PrometheusError, match="no answer within 50ms"):
        await query(prometheus.settings(timeout="50ms"), "up")


async def test_only_certificates_of_the_given_authority_are_trusted(tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    command = [needed("openssl"), "req", "-x509", "-newkey", "ec"]
    command += ["-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    async with fake_prometheus(tls) as fake:
        await query(fake.settings(ca_file=str(certificate)), "up")
        await query(fake.settings(insecure_skip_verify=True), "up")
        with pytest.raises(PrometheusError, match="CERTIFICATE_VERIFY_FAILED"):
            await query(fake.settings(), "up")


def test_text_cannot_leave_its_quotes() -> None:
    assert quoted('a"b\\c\nd') == r'"a\"b\\c\nd"'


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "1s"), (1.5, "2s"), (90, "1m30s"), (7200, "2h")]
)
def test_times_have_no_fractions(seconds: float, text: str) -> None:
    assert time_range(seconds) == text


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"address": "localhost:9090"}, "args.address: expected an address without credentials"),
        ({"address": "http://me:secret@host"}, "args.address: expected an address without"),
        ({"interval": "30"}, 'args.interval: expected a duration such as "500ms"'),
        ({"interval": "0s"}, 'a duration must be longer than "0s"'),
        ({"maxAge": "10s"}, "maxAge must not be shorter than interval"),
        ({"username": "me"}, "username and passwordFile need each other"),
        ({"passwordFile": "f"}, "username and passwordFile need each other"),
        (
            {"username": "me", "passwordFile": "f", "bearerTokenFile": "t"},
            "username and bearerTokenFile exclude each other",
        ),
        ({"preset": "nodes"}, "did you mean `node`"),
        ({"nodeLabel": "no-label"}, "args.nodeLabel: expected the name of a Prometheus label"),
        ({"nodeLabel": "host", "nodeFormat": "x"}, "must contain {name}"),
        ({"adress": "http://host"}, "did you mean"),
    ],
)
def test_a_mistake_is_refused_with_its_place(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        check_arguments(args, PrometheusSettings, "args")
    assert problem in str(error.value)


def test_a_label_and_a_format_replace_the_preset() -> None:
    args = {"nodeLabel": "host", "nodeFormat": "{name}.example.com", "preset": "instance-ip"}
    layout = check_arguments(args, PrometheusSettings, "args").layout
    assert (layout.label, layout.format, layout.join) == ("host", "{name}.example.com", "")


def container(requests: str = "0", limit: str = "0", memory: str = "0") -> Container:
    return Container(
        resources=Resources(requests={"cpu": requests}, limits={"cpu": limit, "memory": memory})
    )


@pytest.mark.parametrize(
    ("pod", "limits"),
    [
        pytest.param(make_pod(), (0, 0), id="nothing"),
        pytest.param(
            make_pod(containers=[container(limit="1", memory="1Ki"), container(limit="500m")]),
            (1500, 1024),
            id="containers together",
        ),
        pytest.param(
            make_pod(
                containers=[container(limit="1")],
                init_containers=[container(limit="3"), container(limit="2")],
            ),
            (3000, 0),
            id="the largest step of initialisation",
        ),
        pytest.param(
            make_pod(containers=[container(limit="1")], overhead={"cpu": "100m"}),
            (1100, 0),
            id="overhead",
        ),
        pytest.param(
            make_pod(containers=[container(requests="2")]), (2000, 0), id="at least the requests"
        ),
    ],
)
def test_limits_of_a_pod(pod: Pod, limits: tuple[int, int]) -> None:
    assert Limits().of_pod(pod) == limits


def test_limits_of_nodes_are_those_of_their_pods_also_when_these_change() -> None:
    def pod(name: str, node: str, limit: str) -> Pod:
        return make_pod(name, node=node, containers=[container(limit=limit, memory="1Ki")])

    nodes = make_node("a"), make_node("b")
    limits = Limits()
    before = make_nodes(*nodes, pods=[pod("p", "a", "1"), pod("q", "a", "2"), pod("r", "b", "3")])
    assert [each.tolist() for each in limits.of_nodes(before)] == [[3000, 3000], [2048, 1024]]
    after = make_nodes(*nodes, pods=[pod("p", "a", "5"), pod("r", "b", "3")])
    assert [each.tolist() for each in limits.of_nodes(after)] == [[5000, 3000], [1024, 1024]]
