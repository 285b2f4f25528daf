"""The admin port: what it shows, and who may see what."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from moorage.errors import ConfigurationError, MoorageError
from moorage_host.http.callers import Review, TokenReviewer, readable, require_read
from moorage_host.process.admin import Check, address, admin_server
from moorage_host.process.lifecycle import AdminSettings
from moorage_host.tls.certificate import Certificates, read_certificate
from moorage_host.tls.security import Security, client_context
from tools.inprocess.certificates import authority, write_folder


async def ask(address: str, path: str, method: str = "GET") -> tuple[int, Any]:
    url = f"http://{address}{path}"
    async with aiohttp.ClientSession() as http, http.request(method, url) as answer:
        is_json = answer.content_type == "application/json"
        return answer.status, await (answer.json() if is_json else answer.text())


def serve(checks: dict[str, Check] | None = None, **options: Any) -> Any:
    settings = AdminSettings(admin_host="127.0.0.1", admin_port=0)
    return admin_server(settings, checks=checks or {}, **options)


CACHE, POLICY = {"name": "cache", "status": "ok"}, {"name": "policy", "status": "ok"}
UNSYNCED = {"name": "cache", "status": "not ready", "reason": "not synced"}
DEGRADED = {"name": "policy", "status": "degraded", "reason": "a note"}
NOTES = [{"name": "policy", "note": "a note"}]


@pytest.mark.parametrize(
    ("path", "cache", "note", "status", "said"),
    [
        ("/livez", "not synced", None, 200, {"status": "ok"}),
        ("/readyz", "not synced", None, 503, {"status": "not ready", "checks": [UNSYNCED]}),
        ("/readyz", None, None, 200, {"status": "ok"}),
        ("/readyz?verbose", None, None, 200, {"status": "ok", "checks": [CACHE, POLICY]}),
        (
            "/readyz?verbose",
            None,
            "a note",
            200,
            {"status": "degraded", "checks": [CACHE, DEGRADED], "notes": NOTES},
        ),
    ],
)
async def test_probes_tell_what_is_not_ready_or_degraded(
    path: str, cache: str | None, note: str | None, status: int, said: object
) -> None:
    checks: dict[str, Check] = {"cache": lambda: cache, "policy": lambda: None}
    async with serve(checks, notes={"policy": lambda: note}) as admin:
        assert await ask(admin, path) == (status, said)


async def test_a_check_that_crashes_is_not_ready() -> None:
    async with serve({"cache": lambda: str(1 / 0)}) as admin:
        status, answer = await ask(admin, "/readyz")
    assert (status, answer["checks"][0]["name"]) == (503, "cache")


async def test_metrics_come_in_the_format_and_encoding_that_are_accepted() -> None:
    registry = CollectorRegistry()
    Counter("moorage_things", "Things.", ["kind"], registry=registry).labels("a").inc(3)
    accepted = {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"}
    async with serve(registry=registry) as admin, aiohttp.ClientSession() as http:
        url = f"http://{admin}/metrics"
        async with http.get(url, headers=accepted) as answer:
            text = await answer.text()
            assert answer.headers["Content-Encoding"] == "gzip"
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        assert 'moorage_things_total{kind="a"} 3.0\n' in text
        assert text.endswith("# EOF\n")
        async with http.get(url, headers={"Accept-Encoding": "identity"}) as answer:
            assert "Content-Encoding" not in answer.headers
            assert answer.content_type == "text/plain"
        async with http.get(f"{url}?name[]=no_such") as answer:
            assert await answer.text() == ""


async def test_metrics_are_collected_where_the_event_loop_runs() -> None:
    class State(Collector):
        """Reads what the event loop's thread may change."""

        def collect(self) -> Iterable[Metric]:
            asyncio.get_running_loop()
            yield GaugeMetricFamily("moorage_state", "State.", 1)

    registry = CollectorRegistry()
    async with serve(registry=registry) as admin:
        registry.register(State())
        assert (await ask(admin, "/metrics"))[0] == 200


async def test_a_wrong_path_or_method_lists_the_right_ones() -> None:
    async def decision(_: web.Request) -> web.Response:
        raise web.HTTPNotFound(text="no such decision")

    async with serve(routes=[web.get("/decisions/{uid}", decision)]) as admin:
        status, answer = await ask(admin, "/decision")
        assert status == 404
        assert answer["paths"] == ["/decisions/{uid}", "/livez", "/metrics", "/readyz"]
        assert await ask(admin, "/decisions/1") == (404, "no such decision")
        status, answer = await ask(admin, "/readyz", "POST")
        assert (status, "GET" in answer["error"]) == (405, True)


def test_an_ipv6_address_gets_brackets() -> None:
    assert [address(host, 80) for host in ("::1", "127.0.0.1")] == ["[::1]:80", "127.0.0.1:80"]


async def test_a_taken_port_is_an_error_of_the_configuration() -> None:
    async with serve() as admin:
        port = int(admin.rpartition(":")[2])
        taken = AdminSettings(admin_host="127.0.0.1", admin_port=port)
        with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port}.*already in use"):
            async with admin_server(taken, checks={}):
                pytest.fail("it must not serve")


GOOD = authority()
SETTINGS = AdminSettings(admin_host="127.0.0.1", admin_port=0)


class Tokens:
    """Knows some tokens: "tenant-NAMESPACE" may get the pods there, "admin" those of all."""

    async def review(self, token: str, path: str, verb: str, peer: str) -> Review:
        if token == "down":
            raise MoorageError("the API server does not answer")
        is_allowed = token in ("prometheus", "admin", "lost") or token.startswith("tenant-")
        return Review(user="" if token == "unknown" else token, allowed=is_allowed)

    async def may_get_pods(self, token: str, namespace: str) -> bool:
        if token == "lost":
            raise TimeoutError
        return token in ("admin", f"tenant-{namespace}")


@asynccontextmanager
async def serving(
    folder: Path,
    reviewer: TokenReviewer | None = None,
    routes: Iterable[web.AbstractRouteDef] = (),
) -> AsyncIterator[str]:
    certificates = Certificates(write_folder(folder, GOOD, "moorage-filter"))
    async with admin_server(
        SETTINGS,
        checks={},
        registry=CollectorRegistry(),
        security=Security(certificates=certificates),
        reviewer=reviewer,
        routes=routes,
    ) as admin:
        yield f"https://{admin}"


async def get(
    url: str, context: ssl.SSLContext, token: str = "", **headers: str
) -> tuple[int, Any]:
    if token:
        headers["Authorization"] = f"Bearer {token}"
    async with (
        aiohttp.ClientSession() as http,
        http.get(url, ssl=context, server_hostname="moorage-filter", headers=headers) as answer,
    ):
        text = await answer.text()
        return answer.status, text


def anybody() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=GOOD.certificate.decode())


def named(folder: Path, name: str) -> ssl.SSLContext:
    return client_context(read_certificate(write_folder(folder / name, GOOD, name)))


@pytest.mark.parametrize("path", ["/metrics", "/no-such-path", "/livez/"])
async def test_all_but_probes_needs_the_certificate_of_an_operator(
    tmp_path: Path, path: str
) -> None:
    async with serving(tmp_path) as url:
        for probe in ("/livez", "/readyz"):
            assert (await get(url + probe, anybody()))[0] == 200
        status, text = await get(url + path, anybody())
        assert (status, "moorage-operator" in text) == (401, True)
        status, text = await get(url + path, named(tmp_path, "moorage-scheduler"))
        assert (status, "names moorage-scheduler" in text) == (403, True)
        status, _ = await get(url + path, named(tmp_path, "moorage-metrics"))
        assert status == (200 if path == "/metrics" else 403)
        status, _ = await get(url + path, named(tmp_path, "moorage-operator"))
        assert status == (200 if path == "/metrics" else 404)
        assert (await get(url + path, anybody(), "prometheus"))[0] == 401


async def test_a_bearer_token_is_reviewed(tmp_path: Path) -> None:
    async with serving(tmp_path, Tokens()) as url:
        for token, status, text in (
            ("prometheus", 200, ""),
            ("web", 403, "moorage-metrics"),
            ("unknown", 401, "does not know"),
            ("down", 503, "does not answer"),
        ):
            found, answer = await get(f"{url}/metrics", anybody(), token)
            assert (found, text in answer) == (status, True)
            assert token == "web" or token not in answer


async def show(request: web.Request) -> web.Response:
    """Show what a caller may see: of one namespace, or of those that there are."""
    if (one := request.query.get("namespace")) is not None:
        await require_read(request, one)
        return web.json_response([one])
    return web.json_response(sorted(await readable(request, ["a", "b", ""])))


@pytest.mark.parametrize(
    ("token", "shown", "status", "text"),
    [
        ("admin", ["", "a", "b"], 200, '["a"]'),
        ("tenant-a", ["a"], 200, '["a"]'),
        ("tenant-b", ["b"], 403, '"tenant-b\\" may not get pods in the namespace \\"a\\"'),
        ("prometheus", [], 403, "bind a role with this right"),
        ("lost", None, 503, "the bearer token cannot be checked"),
    ],
)
async def test_a_token_shows_the_namespaces_whose_pods_it_may_get(
    tmp_path: Path, token: str, shown: list[str] | None, status: int, text: str
) -> None:
    async with serving(tmp_path, Tokens(), [web.get("/pods", show)]) as url:
        found, answer = await get(f"{url}/pods", anybody(), token)
        assert (found, answer) == ((200, json.dumps(shown)) if shown is not None else (503, answer))
        found, answer = await get(f"{url}/pods?namespace=a", anybody(), token)
        assert (found, text in answer) == (status, True)
        expected = 200 if token == "admin" else 503 if token == "lost" else 403
        for namespace in ("", "A", "a/b", "a" * 64):
            found, answer = await get(f"{url}/pods?namespace={namespace}", anybody(), token)
            assert found == expected
        operator = named(tmp_path, "moorage-operator")
        assert await get(f"{url}/pods", operator) == (200, json.dumps(["", "a", "b"]))


async def test_a_foreign_web_page_sees_nothing_even_without_certificates() -> None:
    async with admin_server(SETTINGS, checks={}) as admin, aiohttp.ClientSession() as http:
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": f"https://{admin}", "Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"Sec-Fetch-Site": "none"}, 200),
        ):
            async with http.get(f"http://{admin}/livez", headers=headers) as answer:
                assert answer.status == status


async def test_a_page_of_the_port_itself_reads_and_changes_nothing() -> None:
    async with admin_server(SETTINGS, checks={}) as admin, aiohttp.ClientSession() as http:
        own = {"Origin": f"http://{admin}", "Sec-Fetch-Site": "same-origin"}
        async with http.get(f"http://{admin}/readyz", headers=own) as answer:
            assert answer.status == 200
        async with http.post(f"http://{admin}/readyz", headers=own) as answer:
            assert answer.status == 403


async def test_plain_text_is_for_loopback() -> None:
    settings = AdminSettings(admin_host="0.0.0.0", admin_port=0)
    with pytest.raises(ConfigurationError, match=r"0\.0\.0\.0:0 for the admin server.*--tls"):
        async with admin_server(settings, checks={}):
            pytest.fail("it must not listen")
