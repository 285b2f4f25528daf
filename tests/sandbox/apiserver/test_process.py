"""The server as a process of its own."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "sandbox.apiserver"]


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def test_it_says_where_it_listens_and_writes_a_kubeconfig(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with running("--port", "0", "--kubeconfig-out", str(kubeconfig)) as (_, announced):
        server = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        assert server == announced["api"]
        with urllib.request.urlopen(f"{server}/readyz", timeout=5) as reply:
            assert reply.status == 200


def test_sigterm_ends_it_even_with_a_watch_open() -> None:
    path = "/api/v1/namespaces?watch=1"
    with (
        running() as (process, announced),
        urllib.request.urlopen(announced["api"] + path, timeout=5) as watch,
    ):
        watch.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


def test_a_port_that_is_taken_is_one_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        server = subprocess.run(
            [*COMMAND, "--port", port], capture_output=True, text=True, timeout=30, check=False
        )
    assert server.returncode == 1
    assert f"cannot serve on 127.0.0.1:{port}" in server.stderr
    assert "Traceback" not in server.stderr
