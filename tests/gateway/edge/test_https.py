"""The extender's port with certificates, as kube-scheduler's `tlsConfig` uses it."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from gateway.edge import Edge, EdgeSettings, run_edge
from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import Certificates, read_certificate
from moorage_host.tls.security import LOOPBACK, Security, client_context
from tests.gateway.edge.test_refusals import refused
from tools.inprocess.certificates import DAY, authority, write_folder
from tools.inprocess.edge import ScriptedCycles, names_args
from tools.waiting import until

GOOD, OTHER = authority(), authority("another authority")
ARGS = names_args("a", "b")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(write_folder(tmp_path / "gateway", GOOD, "moorage-gateway"))


@asynccontextmanager
async def serving(certificates: Certificates, **settings: Any) -> AsyncIterator[str]:
    options = EdgeSettings(**{"http_drain_time": 0.0} | settings)
    edge = Edge(ScriptedCycles(), options, CollectorRegistry())
    async with run_edge(edge, "127.0.0.1", 0, Security(certificates=certificates)) as port:
        yield f"https://127.0.0.1:{port}/filter"


def scheduler(folder: Path) -> ssl.SSLContext:
    """Return what kube-scheduler has with the files of a folder."""
    return client_context(read_certificate(folder))


async def call(session: aiohttp.ClientSession, url: str, context: ssl.SSLContext) -> int:
    options: Any = {"ssl": context, "server_hostname": "moorage-gateway"}
    async with session.post(url, json=ARGS, **options) as response:
        if response.status == 200:
            assert (await response.json())["NodeNames"] == ["a", "b"]
        else:
            assert "--scheduler-identity" in (await response.json())["error"]
        return response.status


async def test_the_scheduler_is_answered_and_others_are_not(
    certificates: Certificates, tmp_path: Path
) -> None:
    context = scheduler(write_folder(tmp_path / "s", GOOD, "moorage-scheduler"))
    stranger = scheduler(write_folder(tmp_path / "o", GOOD, "moorage-operator"))
    before = refused("identity")
    async with serving(certificates) as url, aiohttp.ClientSession() as session:
        assert [await call(session, url, context) for _ in range(3)] == [200] * 3
        async with aiohttp.ClientSession() as another:
            assert await call(another, url, stranger) == 403
    assert refused("identity") == before + 1


async def test_other_authorities_expired_certificates_and_none_are_refused_in_the_handshake(
    certificates: Certificates, tmp_path: Path
) -> None:
    other = write_folder(
        tmp_path / "a", OTHER, "moorage-scheduler", believed=GOOD.certificate + OTHER.certificate
    )
    soon = timedelta(seconds=2)
    expiring = write_folder(tmp_path / "e", GOOD, "moorage-scheduler", begin=-DAY, life=DAY + soon)
    nobody = ssl.create_default_context(cadata=GOOD.certificate.decode())
    contexts = [scheduler(other), scheduler(expiring), nobody]
    left = read_certificate(expiring).not_after.timestamp() - time.time()
    await asyncio.sleep(max(left, 0) + 0.1)  # a certificate cannot be read once it has expired
    before = refused("handshake")
    async with serving(certificates) as url:
        for context in contexts:
            async with aiohttp.ClientSession() as session:
                with pytest.raises((aiohttp.ClientError, OSError)):
                    await call(session, url, context)
        await until(lambda: refused("handshake") >= before + len(contexts))


async def test_plain_text_and_silence_are_no_handshakes(certificates: Certificates) -> None:
    before = refused("handshake") + refused("head_time")
    async with serving(certificates, http_head_time=0.2) as url:
        port = int(url.split(":")[2].split("/")[0])
        for sent in (b"POST /filter HTTP/1.1\r\nHost: gateway\r\n\r\n", b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            with suppress(ConnectionError):
                assert b"HTTP" not in await reader.read()
            writer.close()
        await until(lambda: refused("handshake") + refused("head_time") >= before + 2)


async def test_handshakes_that_hang_do_not_keep_the_scheduler_out(
    certificates: Certificates, tmp_path: Path
) -> None:
    context = scheduler(write_folder(tmp_path / "s", GOOD, "moorage-scheduler"))
    async with serving(certificates, http_connections=2) as url, aiohttp.ClientSession() as session:
        port = int(url.split(":")[2].split("/")[0])
        hanging = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        assert await call(session, url, context) == 200
        for _, writer in hanging:
            writer.close()


async def test_plain_text_is_for_loopback() -> None:
    edge = Edge(ScriptedCycles(), EdgeSettings(), CollectorRegistry())
    with pytest.raises(ConfigurationError, match=r"0\.0\.0\.0:0 for kube-scheduler.*--tls"):
        async with run_edge(edge, "0.0.0.0", 0, LOOPBACK):
            pytest.fail("it must not listen")
