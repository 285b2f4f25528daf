"""Extenders behind https."""

import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from sandbox.scheduler.config import TLS, ExtenderConfig
from sandbox.scheduler.extenders.client import Extender, ExtenderError
from tests.needs import needed


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate for gateway.test that signs itself; its key is beside it."""
    openssl = needed("openssl")
    path = tmp_path_factory.mktemp("tls") / "cert.pem"
    name = ("-subj", "/CN=gateway.test", "-addext", "subjectAltName=DNS:gateway.test")
    files = ("-keyout", str(path.with_suffix(".key")), "-out", str(path))
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run([openssl, "req", *kind, *name, *files], check=True, capture_output=True)
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


def tls(certificate: Path, *, trusted: bool = True, name: str = "gateway.test") -> TLS:
    return TLS(
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
