"""What Moorage cannot be faster than: loopback HTTP, and one message over gRPC and back a call.

python -m bench.processes.floor --port PORT --hop HOST:PORT --hop HOST:PORT    only asks the hops
python -m bench.processes.floor --port PORT                                    a hop

Everything is made as in Moorage: aiohttp, streams of grpc.aio that stay open, and no JSON is read
that need not be.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc.aio
from aiohttp import web

from moorage_host.process.lifecycle import ProcessSettings, announce, process, run
from moorage_host.rpc.channel import connect
from moorage_host.settings import parse_settings, setting

HOST = "127.0.0.1"
MESSAGE_BYTES = 5000
"""About what a cycle of 5,000 nodes needs: the pod and a bitmap."""

SERVICE, METHOD = "bench.Floor", "Session"
NAMES = b',"Nodes":null,"NodeNames":'
JSON = {"Content-Type": "application/json"}
LARGEST_BODY = 1 << 26

Call = grpc.aio.StreamStreamCall[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessSettings):
    """The process's options."""

    port: int = setting(0, "Port to listen on.", minimum=0, maximum=65535)
    hop: tuple[str, ...] = setting((), "Where messages go: of filter, and of prioritize.")


async def serve(options: Options) -> None:
    """Serve until SIGTERM or SIGINT."""
    with process("floor", options) as stop:
        if options.hop:
            runner = await _extender(options)
            announce("serving", service="floor", port=str(options.port))
            await stop.wait()
            await runner.cleanup()
        else:
            server = await _echo(options.port)
            announce("serving", service="floor", port=str(options.port))
            await stop.wait()
            await server.stop(None)


async def _extender(options: Options) -> web.AppRunner:
    calls: Sequence[Call] = [
        connect(hop).stream_stream(f"/{SERVICE}/{METHOD}")() for hop in options.hop
    ]

    async def filtered(request: web.Request) -> web.Response:
        body = await request.read()
        names = body[body.find(NAMES) + len(NAMES) : -1]
        await _there_and_back(calls[0], body[:MESSAGE_BYTES])
        start, end = b'{"Nodes":null,"NodeNames":', b',"FailedNodes":null,"Error":""}'
        return web.Response(body=start + names + end, headers=JSON)

    async def prioritized(request: web.Request) -> web.Response:
        body = await request.read()
        names = body[body.find(NAMES) + len(NAMES) + 2 : -3].split(b'","')
        await _there_and_back(calls[1], body[:MESSAGE_BYTES])
        answer = b'[{"Host":"' + b'","Score":7},{"Host":"'.join(names) + b'","Score":7}]'
        return web.Response(body=answer, headers=JSON)

    app = web.Application(client_max_size=LARGEST_BODY)
    app.router.add_post("/filter", filtered)
    app.router.add_post("/prioritize", prioritized)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, options.port).start()
    return runner


async def _there_and_back(call: Call, message: bytes) -> None:
    await call.write(message)
    await call.read()


async def _echo(port: int) -> grpc.aio.Server:
    async def session(requests: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    server = grpc.aio.server()
    method: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        METHOD: grpc.stream_stream_rpc_method_handler(session)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, method),))
    server.add_insecure_port(f"{HOST}:{port}")
    await server.start()
    return server


if __name__ == "__main__":
    run(serve(parse_settings(Options, "python -m bench.processes.floor")))
