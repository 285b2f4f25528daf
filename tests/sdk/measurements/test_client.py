import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.measurements import PrometheusError, PrometheusSettings
from moorage.measurements.prometheus.client import query
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


async def test_an_address_may_have_a_path_and_a_slash_at_its_end(
    prometheus: FakePrometheus,
) -> None:
    await query(PrometheusSettings(address=f"{prometheus.address}/prom/"), "up")
    assert prometheus.requests[0][1] == "/prom/api/v1/query"


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


async def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(PrometheusError, match="cannot query Prometheus at"):
        await query(PrometheusSettings(address=f"http://127.0.0.1:{port}"), "up")


async def test_silence_is_an_error_after_the_timeout(prometheus: FakePrometheus) -> None:
    prometheus.stuck = True
    with pytest.raises(PrometheusError, match="no answer within 50ms"):
        await query(prometheus.settings(timeout="50ms"), "up")


async def test_a_missing_token_is_an_error(prometheus: FakePrometheus) -> None:
    with pytest.raises(PrometheusError, match="No such file"):
        await query(prometheus.settings(bearer_token_file="/nowhere/token"), "up")


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
