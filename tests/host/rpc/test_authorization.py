"""What each caller gets from each method: real servers, real certificates."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain, product
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cli.certs.certificates import Issued
from moorage import FilterPlugin, ScorePlugin
from moorage.v1 import binder_pb2, filter_pb2, replica_pb2, scorer_pb2
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.serve import ServiceDefinition, running
from moorage_host.rpc.settings import CycleSettings
from moorage_host.tls.identities import METHODS
from services.filter.servicer import filter_service
from services.scorer.servicer import scorer_service
from tests.host.rpc.support import settings
from tests.host.rpc.tiny import tiny
from tools.inprocess.certificates import DAY, authority, write_folder

GOOD, OTHER = authority("good"), authority("other")

REPLICA = replica_pb2.DESCRIPTOR.services_by_name["ReplicaService"]
OWN: Mapping[str, Sequence[ServiceDescriptor]] = {
    "filter": (filter_pb2.DESCRIPTOR.services_by_name["FilterService"], REPLICA),
    "scorer": (scorer_pb2.DESCRIPTOR.services_by_name["ScorerService"], REPLICA),
    "binder": (binder_pb2.DESCRIPTOR.services_by_name["BinderService"],),
}
COMMON: Mapping[str, ServiceDescriptor] = {
    "health": health_pb2.DESCRIPTOR.services_by_name["Health"],
    "reflection": reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
}

GATEWAY = {"gateway"}
PEOPLE = {"gateway", "operator"}
ANYONE = {"gateway", "operator", "scheduler", "wrong name"}

ALLOWED: Mapping[str, set[str]] = {
    "Session": GATEWAY,
    "FollowState": GATEWAY,
    "FollowRetries": GATEWAY,
    "FollowProblems": GATEWAY,
    "Barrier": GATEWAY,
    "Bind": GATEWAY,
    "RetryPods": GATEWAY,
    "Filter": PEOPLE,
    "Score": PEOPLE,
    "ListPlugins": PEOPLE,
    "GetState": PEOPLE,
    "Check": ANYONE,
    "Watch": ANYONE,
    "List": set(),
    "ServerReflectionInfo": PEOPLE,
}
"""Who may call each method, whichever service has it."""

CALLERS: Mapping[str, tuple[Issued, str, dict[str, Any]] | None] = {
    "no certificate": None,
    "wrong authority": (OTHER, "moorage-gateway", {}),
    "expired": (GOOD, "moorage-gateway", {"begin": -2 * DAY}),
    "wrong name": (GOOD, "moorage-filter", {}),
    "operator": (GOOD, "moorage-operator", {}),
    "scheduler": (GOOD, "moorage-scheduler", {}),
    "gateway": (GOOD, "moorage-gateway", {}),
}

DEFINITIONS: Mapping[str, ServiceDefinition[Any]] = {
    "filter": filter_service(CycleSettings(), Registry(FilterPlugin)),
    "scorer": scorer_service(CycleSettings(), Registry(ScorePlugin)),
    "binder": tiny(),
}


OPEN_SECONDS = 2.0


@asynccontextmanager
async def channels(folder: Path, address: str) -> AsyncIterator[dict[str, grpc.aio.Channel]]:
    """Connect as each caller."""
    async with AsyncExitStack() as stack:
        opened = {}
        for caller, given in CALLERS.items():
            key = chain = None
            if given is not None:
                signer, name, changes = given
                files = write_folder(folder / caller, signer, name, **changes)
                key, chain = (files / "tls.key").read_bytes(), (files / "tls.crt").read_bytes()
            credentials = grpc.ssl_channel_credentials(GOOD.certificate, key, chain)
            options = [
                ("grpc.ssl_target_name_override", "moorage-server"),
                ("grpc.use_local_subchannel_pool", 1),
            ]
            channel = grpc.aio.secure_channel(address, credentials, options)
            opened[caller] = await stack.enter_async_context(channel)
        yield opened


async def answer(channel: grpc.aio.Channel, service: ServiceDescriptor, method: str) -> str:
    """Return the code and text with which a method answers; a stream is let in that stays open."""
    described = service.methods_by_name[method]
    path = f"/{service.full_name}/{method}"
    call: Any
    if described.client_streaming:
        call = channel.stream_stream(path)(timeout=OPEN_SECONDS)
    elif described.server_streaming:
        call = channel.unary_stream(path)(b"", timeout=OPEN_SECONDS)  # type: ignore[arg-type]
    else:
        call = channel.unary_unary(path)(b"", timeout=20)  # type: ignore[arg-type]
    code = await call.code()
    return f"{code.name}: {await call.details()}"


async def test_each_caller_gets_what_the_table_has(tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:  # at once, as streams that are let in stay open
        for name in OWN:
            group.create_task(check_service(tmp_path / name, name))


async def check_service(folder: Path, name: str) -> None:
    files = write_folder(folder / "server", GOOD, "moorage-server")
    found: dict[str, set[str]] = {}
    async with (
        running(DEFINITIONS[name], settings(tls=files, shutdown_grace=0.0)) as server,
        channels(folder, server.grpc) as opened,
    ):
        for channel in opened.values():  # so that no stream's time is spent on connecting
            await answer(channel, COMMON["health"], "Check")

        async def check(service: ServiceDescriptor, method: str, caller: str) -> None:
            text = await answer(opened[caller], service, method)
            if text.startswith("UNAVAILABLE: failed to connect"):
                assert caller in ("no certificate", "wrong authority", "expired")
            elif text.startswith("PERMISSION_DENIED"):
                assert f" may not call {service.full_name}/{method}; allowed: " in text
                assert "moorage-" in text.split(" may not call ")[0]
            else:
                found.setdefault(method, set()).add(caller)

        async with asyncio.TaskGroup() as group:
            for service in (*OWN[name], *COMMON.values()):
                for method, caller in product(service.methods_by_name, CALLERS):
                    group.create_task(check(service, method, caller))
    methods = [m for each in (*OWN[name], *COMMON.values()) for m in each.methods_by_name]
    assert found == {method: ALLOWED[method] for method in methods if ALLOWED[method]}


def test_the_table_names_every_method_and_no_other() -> None:
    services = (*chain(*OWN.values()), *COMMON.values())
    names = {f"{s.full_name}/{method}" for s in services for method in s.methods_by_name}
    assert set(METHODS) == names


async def test_identities_are_settings(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "server", GOOD, "moorage-server")
    changed = settings(tls=folder, shutdown_grace=0.0, gateway_identity=("front", "moorage-filter"))
    (service,) = OWN["binder"]
    async with (
        running(DEFINITIONS["binder"], changed) as server,
        channels(tmp_path, server.grpc) as opened,
    ):
        assert (await answer(opened["wrong name"], service, "Bind")).startswith("OK")
        refusal = await answer(opened["gateway"], service, "Bind")
    assert refusal == (
        "PERMISSION_DENIED: moorage-gateway may not call moorage.v1.BinderService/Bind; "
        "allowed: front, moorage-filter"
    )


async def test_servers_speak_tls_1_3_only(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "server", GOOD, "moorage-server")
    caller = write_folder(tmp_path / "caller", GOOD, "moorage-gateway")
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(caller / "tls.crt", caller / "tls.key")
    context.set_alpn_protocols(["h2"])
    async with running(DEFINITIONS["binder"], settings(tls=folder, shutdown_grace=0.0)) as server:
        host, _, port = server.grpc.rpartition(":")

        async def version() -> str:
            _, writer = await asyncio.open_connection(
                host, int(port), ssl=context, server_hostname="moorage-server"
            )
            found: str = writer.get_extra_info("ssl_object").version()
            writer.close()
            return found

        assert await version() == "TLSv1.3"
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await version()


async def test_a_method_that_does_not_exist_is_no_way_in(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "server", GOOD, "moorage-server")
    async with (
        running(DEFINITIONS["binder"], settings(tls=folder, shutdown_grace=0.0)) as server,
        channels(tmp_path, server.grpc) as opened,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await opened["operator"].unary_unary("/moorage.v1.BinderService/Other")(b"")  # type: ignore[arg-type]
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
