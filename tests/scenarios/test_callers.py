"""What callers get on each HTTP port of processes with certificates; docs/http-ports.md has it."""

import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from cli.certs.folders import CertificateOptions, keep_certificates
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.contexts import client_context
from tests.scenarios.planes import ROOT, EmbeddedPlane
from tests.scenarios.services import Services

pytestmark = pytest.mark.asyncio(loop_scope="session")

CALLERS = ("nobody", "scheduler", "operator", "filter")
PAGE = ROOT / "docs" / "http-ports.md"
ROW = re.compile(r"^\| (extender|admin), \d+ \| `(\w+) (/\S*)` \| (.*) \|$", re.M)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("certs")
    keep_certificates(root, CertificateOptions(further_names=("127.0.0.1", "localhost")))
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def services(
    tmp_path_factory: pytest.TempPathFactory, folders: Path
) -> AsyncIterator[Services]:
    plane = EmbeddedPlane(tmp_path_factory.mktemp("callers"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(plane.stop)
        await plane.start()
        started = Services(plane, through_proxy=False, certificates=folders)
        await started.start(stack)
        yield started


def rows() -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield port, method, path and what each caller gets, as the page has it."""
    for port, method, path, answers in ROW.findall(PAGE.read_text()):
        yield port, method, path, answers.split(" | ")


def context(folders: Path, caller: str) -> ssl.SSLContext:
    if caller == "nobody":
        return ssl.create_default_context(cadata=(folders / "ca" / "ca.crt").read_text())
    return client_context(read_certificate(folders / caller))


async def answer(folders: Path, caller: str, method: str, url: str) -> str:
    try:
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, url, json={}, ssl=context(folders, caller)) as response,
        ):
            return str(response.status)
    except (aiohttp.ClientError, OSError):
        return "no TLS"


async def test_callers_get_what_the_page_has(services: Services, folders: Path) -> None:
    ports = {"extender": [services.extender], "admin": [services.admin, *services.admins]}
    table = list(rows())
    assert {port for port, *_ in table} == set(ports)
    for port, method, path, expected in table:
        for url in ports[port]:
            found = [await answer(folders, caller, method, url + path) for caller in CALLERS]
            at_gateway = url in (services.extender, services.admin)
            if path.startswith("/decisions") and not at_gateway:
                continue
            assert found == expected, f"{method} {url}{path}"
