"""Serves the inspector on loopback, and asks the gateway as the command is known to it.

So no browser needs a certificate or a token. The path begins with a secret: other users of this
machine, and pages of other sites, do not know it.
"""

import asyncio
import secrets
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import hdrs, web

from cli.shared.gateway.client import Gateway, connected
from cli.shared.gateway.forwarding import LOOPBACK
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import echo

SECRET_BYTES = 24

PASSED_ON = (hdrs.ACCEPT, hdrs.IF_NONE_MATCH)
"""Headers of requests that the gateway is sent."""

LEFT_OUT = frozenset(
    {hdrs.CONTENT_ENCODING, hdrs.CONTENT_LENGTH, hdrs.TRANSFER_ENCODING, hdrs.CONNECTION}
)
"""Headers of answers that are about the gateway's own connection."""


async def run(options: GatewayOptions, *, opens: bool) -> None:
    """Serve until cancelled, and open the page in a browser if it is to.

    Raises:
        ConfigurationError: A file cannot be used, or options do not go together.
        GatewayError: There is no gateway, or it refuses the caller.
        KubeError: The API server does not answer, or refuses to.
    """
    async with connected(options) as gateway, serving(gateway) as (url, once):
        await gateway.get("/decisions", {"limit": "1"})  # says at once what is wrong
        echo(f"The inspector of {gateway.place} is at {url} until Ctrl-C.")
        if opens and not await asyncio.to_thread(webbrowser.open, once):
            echo("No browser opened: open the address in one.", err=True)
        await asyncio.Event().wait()


@asynccontextmanager
async def serving(gateway: Gateway) -> AsyncIterator[tuple[str, str]]:
    """Serve a gateway's admin port on loopback, to read; give two addresses of the inspector.

    The second works once: others see it among the processes when a browser is started with it.
    """
    secret, code = (secrets.token_urlsafe(SECRET_BYTES) for _ in range(2))
    unused = {code}

    async def lead(_: web.Request) -> web.Response:
        if not unused:
            raise web.HTTPGone(text="This address works once: run the command again.")
        unused.clear()
        raise web.HTTPFound(f"/{secret}/inspector/")

    async def answer(request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path_qs.removeprefix(f"/{secret}")
        headers = {
            str(name): request.headers[name] for name in PASSED_ON if name in request.headers
        }
        response: web.StreamResponse | None = None
        try:
            async with gateway.open(path, headers) as found:
                kept = {name: each for name, each in found.headers.items() if name not in LEFT_OUT}
                response = web.StreamResponse(status=found.status, headers=kept)
                await response.prepare(request)
                async for chunk in found.content.iter_any():
                    await response.write(chunk)
                return response
        except (aiohttp.ClientError, OSError) as error:
            if response is not None and response.prepared:
                return response  # what has begun cannot become another answer
            text = str(gateway.unreachable(error))
            return web.json_response({"error": text}, status=web.HTTPBadGateway.status_code)

    app = web.Application()
    app.router.add_get(f"/{code}", lead)
    app.router.add_get(f"/{secret}/{{path:.*}}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, 0).start()
        place = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
        yield f"{place}/{secret}/inspector/", f"{place}/{code}"
    finally:
        await runner.cleanup()
