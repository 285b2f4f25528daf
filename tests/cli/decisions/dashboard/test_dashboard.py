"""`moorage dashboard` serves the inspector with the rights of the command, on a secret path."""

from pathlib import Path

import aiohttp
import pytest

from cli.decisions.dashboard import serving
from cli.shared.gateway.client import connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import gateway


async def test_the_page_is_served_with_the_commands_certificate_and_can_only_read(
    tmp_path: Path,
) -> None:
    tls = write_folder(tmp_path, authority(), "moorage-gateway", "moorage-operator", "127.0.0.1")
    async with gateway(tmp_path, tls=tls) as running:
        options = GatewayOptions(admin=running.admin, tls=tls)
        async with (
            connected(options) as admin,
            serving(admin) as (url, once),
            aiohttp.ClientSession() as browser,
        ):
            async with browser.get(url) as page:
                assert page.status == 200
                assert "default-src 'self'" in page.headers["Content-Security-Policy"]
                assert "app.js" in await page.text()
                tag = {"If-None-Match": page.headers["ETag"]}
            async with browser.get(url, headers=tag) as again:
                assert again.status == 304
            async with browser.get(once) as opened:
                assert str(opened.url) == url
            async with browser.get(once) as used:
                assert used.status == 410
            base = url.removesuffix("/inspector/")
            async with browser.get(f"{base}/decisions?limit=1") as listed:
                assert await listed.json() == {"items": [], "continue": ""}
            async with browser.get(f"{base}/decisions/stream") as stream:
                assert await stream.content.readline() == b": decisions\n"
            async with browser.post(f"{base}/simulate", json={}) as refused:
                assert refused.status == 405
            for path in ("/inspector/", "/", "/guess/decisions"):
                async with browser.get(base.rpartition("/")[0] + path) as hidden:
                    assert hidden.status == 404


async def test_a_gateway_that_is_gone_is_named_with_what_to_do() -> None:
    async with (
        connected(GatewayOptions(admin="http://127.0.0.1:9")) as admin,
        serving(admin) as (url, _),
        aiohttp.ClientSession() as browser,
        browser.get(url) as page,
    ):
        assert page.status == 502
        assert "give --admin" in (await page.json())["error"]
        with pytest.raises(GatewayError, match="cannot be asked"):
            await admin.get("/decisions")
