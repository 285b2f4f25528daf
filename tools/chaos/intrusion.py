"""Calls every port with a certificate that must be refused."""

from collections.abc import Awaitable
from pathlib import Path

import aiohttp
import grpc.aio

from moorage.v1.binder_pb2 import BindRequest
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage.v1.filter_pb2 import FilterServiceGetStateRequest
from moorage.v1.filter_pb2_grpc import FilterServiceStub
from tools.chaos.certificates import grpc_channel, http_context
from tools.chaos.stack import HOST, Stack

SECONDS = 5
REFUSED = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED})


async def let_in(stack: Stack, session: aiohttp.ClientSession, folder: Path) -> list[str]:
    """Return which ports have let a caller in with the certificate of *folder*."""
    (gateway,) = stack.gateways
    edge = f"https://{HOST}:{stack.port(gateway)}/filter"
    bind = BindRequest(namespace="default", name="none", uid="none", node="none")
    state = FilterServiceGetStateRequest(node_names=["plain-0"])
    async with (
        grpc_channel(f"{HOST}:{stack.port('binder')}", folder) as binder,
        grpc_channel(f"{HOST}:{stack.port('filter')}", folder) as filtering,
    ):
        entered = {
            "extender": await _http(session, "POST", edge, folder),
            "gateway's metrics": await _http(
                session, "GET", f"{stack.admin(gateway)}/metrics", folder
            ),
            "Bind": await _grpc(BinderServiceStub(binder).Bind(bind, timeout=SECONDS)),
            "GetState": await _grpc(FilterServiceStub(filtering).GetState(state, timeout=SECONDS)),
        }
    return [f"{port} answered a call" for port, is_in in entered.items() if is_in]


async def _http(session: aiohttp.ClientSession, method: str, url: str, folder: Path) -> bool:
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    options = {"ssl": http_context(folder), "timeout": timeout, "json": {}}
    try:
        async with session.request(method, url, **options) as answer:  # type: ignore[arg-type]
            return answer.status not in (401, 403)
    except aiohttp.ClientError:
        return False


async def _grpc(call: Awaitable[object]) -> bool:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code() not in REFUSED
    return True
