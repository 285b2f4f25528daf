"""The floor: an extender that does nothing, with the same HTTP server and JSON library.

`python bench/floor.py` listens on a free port and prints it. What the gateway costs on top of this
is the price of deciding.
"""

import asyncio

import msgspec
from aiohttp import web


class Args(msgspec.Struct):
    Pod: msgspec.Raw
    NodeNames: list[str]


decode = msgspec.json.Decoder(Args).decode


async def keep_all(request: web.Request) -> web.Response:
    args = decode(await request.read())
    names = msgspec.json.encode(args.NodeNames)
    body = (
        b'{"Nodes":null,"NodeNames":'
        + names
        + b',"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""}'
    )
    return web.Response(body=body, content_type="application/json")


async def like_all(request: web.Request) -> web.Response:
    args = decode(await request.read())
    body = msgspec.json.encode([{"Host": name, "Score": 5} for name in args.NodeNames])
    return web.Response(body=body, content_type="application/json")


async def main() -> None:
    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/filter", keep_all)
    app.router.add_post("/prioritize", like_all)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
