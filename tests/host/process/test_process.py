"""A process starts soon, and ends as it should."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from moorage.v1.binder_pb2 import BindRequest, Outcome
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.channel import connect
from sandbox.apiserver import ApiServer
from tests.forked import Running
from tests.host.rpc.support import run

StartTiny = Callable[..., Awaitable[Running]]
NO_DELAY = "--shutdown-delay=0s"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_calls_finish_and_ends_with_exit_code_0(
    start_tiny: StartTiny, number: int
) -> None:
    tiny = await start_tiny(NO_DELAY)
    serving = await tiny.event()
    assert serving.keys() == {"event", "service", "grpc", "admin"}
    assert (serving["event"], serving["service"]) == ("serving", "tiny")
    async with connect(serving["grpc"]) as channel:
        stub = BinderServiceStub(channel)
        call = asyncio.ensure_future(stub.Bind(BindRequest(node="slow"), timeout=20))
        assert await tiny.event() == {"event": "binding"}
        tiny.process.send_signal(number)
        assert (await call).outcome == Outcome.OUTCOME_BOUND
    code, errors = await tiny.ended()
    assert code == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_at_once(start_tiny: StartTiny, number: int) -> None:
    tiny = await start_tiny(NO_DELAY)
    async with grpc.aio.insecure_channel((await tiny.event())["grpc"]) as channel:
        stub = BinderServiceStub(channel)
        call = asyncio.ensure_future(stub.Bind(BindRequest(node="stuck"), timeout=20))
        assert await tiny.event() == {"event": "binding"}
        tiny.process.send_signal(signal.SIGTERM)
        await _log_has(tiny, b"The service drains")
        tiny.process.send_signal(number)
        code, _ = await tiny.ended()
        await asyncio.wait([call])
    assert code == 128 + number


async def _log_has(tiny: Running, sentence: bytes) -> None:
    assert tiny.stderr
    async with asyncio.timeout(20):
        while sentence not in await tiny.stderr.readline():
            pass


@pytest.mark.parametrize(
    ("failing", "line"),
    [
        ("create", "moorage tiny: cannot load plugin hot.py: line 3: no class found\n"),
        ("start", "moorage tiny: no such cluster\n"),
    ],
)
async def test_what_the_user_must_change_is_one_line(
    start_tiny: StartTiny, failing: str, line: str
) -> None:
    tiny = await start_tiny(f"--failing={failing}")
    assert await tiny.ended() == (1, line)


async def test_a_taken_port_is_one_line(start_tiny: StartTiny) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        tiny = await start_tiny(f"--port={port}")
        code, errors = await tiny.ended()
    assert (code, errors.count("\n")) == (1, 1)
    assert all(said in errors for said in (f"127.0.0.1:{port}", "already in use", "--port"))


def test_a_full_stdout_is_no_reason_to_end() -> None:
    code = "from moorage_host.process import lifecycle, logs; logs.configure_logging(); "
    code += "lifecycle.announce('serving')"
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert ended.returncode == 0, ended.stderr
    assert b"stdout takes no line" in ended.stderr


MODULES = {"gateway": 1950, "services.filter": 950, "services.scorer": 950, "services.binder": 1900}
"""How many a process may import until it serves: about 860 are of the Kubernetes client library."""


@pytest.mark.parametrize("module", MODULES)
async def test_a_process_serves_after_few_imports(module: str, tmp_path: Path) -> None:
    options = ["--admin-host=127.0.0.1", "--admin-port=0"]
    if module == "gateway":
        options += ["--extender-host=127.0.0.1", "--extender-port=0", "--leader-election=none"]
        options += [f"--{each}=127.0.0.1:1" for each in ("filter", "scorer", "binder")]
    else:
        options += ["--host=127.0.0.1", "--port=0"]
    async with ApiServer() as server:
        if module in ("gateway", "services.binder"):
            (tmp_path / "kubeconfig").write_text(server.kubeconfig())
            options.append(f"--kubeconfig={tmp_path / 'kubeconfig'}")
        process = await run(sys.executable, "-X", "importtime", "-m", module, *options)
        assert process.stdout
        assert process.stderr
        try:
            reading = asyncio.create_task(_modules(process.stderr))
            async with asyncio.timeout(100):
                line = await process.stdout.readline()
        finally:
            process.kill()
            await process.wait()
            await process.stdout.read()
        loaded = await reading
    assert b'"event":"serving"' in line
    assert 0 < len(loaded) <= MODULES[module], Counter(name.partition(".")[0] for name in loaded)
    assert loaded.index("moorage_host.rpc") < loaded.index("grpc"), "gRPC reads its settings once"


async def _modules(stderr: asyncio.StreamReader) -> list[str]:
    lines = [line async for line in stderr if line.startswith(b"import time:")]
    return [line.rpartition(b"|")[2].decode().strip() for line in lines]
