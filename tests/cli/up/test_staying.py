"""`moorage up` that stays: until a signal, on a terminal, or beside a cluster of its own."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import aiohttp
import yaml

from cli.up.cluster import PODS
from cli.up.processes import free_ports
from sandbox.apiserver import ApiServer
from sandbox.client import Api
from tests.cli.support import PATIENCE, Command, moorage, pod
from tests.needs import needed
from tools.waiting import until

STARTING = "Starting the processes"
STAYS = "The cluster stays up"
IN_TREE = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
scoreScale: 1000
profiles:
- plugins: {multiPoint: {enabled: [{name: InTree}]}}
"""


async def test_it_keeps_fixed_ports_obeys_kubectl_and_takes_all_processes_with_it(
    tmp_path: Path,
) -> None:
    extender, admin = free_ports(2)
    ports = (f"--extender-port={extender}", f"--admin-port={admin}")
    (tmp_path / "policy.yaml").write_text(IN_TREE)
    options = ("--config=policy.yaml", "--nodes=2", "--scorers=2")
    async with moorage(tmp_path, "up", *ports, *options) as command:
        await command.line(STAYS)
        addresses = [line.split()[-3:] for line in command.lines if "127.0.0.1" in line]
        told = "\n".join(command.lines)
        assert all(f"http://127.0.0.1:{port} " in told for port in (extender, admin))
        logs = next(line for line in command.lines if line.startswith("Logs: "))
        config = Path(logs.removeprefix("Logs: ").strip()) / "kube-scheduler-config.yaml"
        assert yaml.safe_load(config.read_text())["extenders"][0]["weight"] == 2  # not 15
        assert len(addresses) == 8  # three of them, the inspector, filter, two scorers, binder
        for port in (extender, admin):
            socket.create_connection(("127.0.0.1", port)).close()

        await kubectl(
            command, "create", "-f", "-", stdin=json.dumps(pod("late", schedulerName="moorage"))
        )
        reason = await command.line("default/late -> node-")
        assert " nodes that tie for Moorage's best total, " in reason
        for name, spec in (("theirs", {}), ("nobodys", {"schedulerName": "nobody"})):
            await kubectl(command, "create", "-f", "-", stdin=json.dumps(pod(name, **spec)))
        theirs = await command.line("default/theirs -> node-")
        assert "Moorage has no decision about it: its schedulerName is default-sched" in theirs
        nobodys = await command.line("default/nobodys -> pending: ")
        assert "its schedulerName is nobody, which no profile serves (profiles: mo" in nobodys
        given = json.dumps(pod("given", nodeName="node-0001"))
        await kubectl(command, "create", "-f", "-", stdin=given)
        assert (await command.line("default/given -> node-0001: ")).endswith(
            ": it was created with a nodeName, so no scheduler was asked"
        )
        answer = await kubectl(command, "get", "nodes", "--output=name")
        assert answer.split() == ["node/node-0000", "node/node-0001"]

        assert len(command.processes()) == 9  # the command, its fork server, and all shown
        command.signal(signal.SIGKILL)
        await until(lambda: command.processes() == [])


async def test_ctrl_c_while_it_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    async with moorage(tmp_path, "up", "--once", "--pods=5") as command:
        await command.line(STARTING)
        await until(lambda: len(command.processes()) >= 2)
        command.signal(signal.SIGINT, group=True)
        assert await command.ended() == (130, "")
        # One that was just being forked ends by itself, a moment later.
        await until(lambda: command.processes() == [])
        assert list(command.home.iterdir()) == []


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with moorage(tmp_path, "up") as command:
        await command.line(STAYS)
        (held,) = command.processes("filter")
        os.kill(held, signal.SIGSTOP)  # so that stopping takes ten seconds
        command.signal(signal.SIGTERM)
        await command.line("Stopping")
        command.signal(signal.SIGINT)
        assert await command.ended() == (130, "")
        await until(lambda: command.processes() == [])


async def test_it_serves_a_real_cluster_without_touching_it(tmp_path: Path) -> None:
    async with ApiServer() as api:
        (tmp_path / "config").write_text(api.kubeconfig())
        revision = api.cluster.store.revision
        async with moorage(tmp_path, "up", "--kubeconfig=config") as command:
            line = await command.line("Point kube-scheduler's extender at urlPrefix http://")
            (extender,) = (word.rstrip(",") for word in line.split() if "http://" in word)
            ours = ("gateway", "filter", "scorer-1", "binder")
            assert len(command.processes(*ours)) == 4
            assert len(command.processes()) == 6  # also the command and its fork server
            async with aiohttp.ClientSession() as session:
                call = {"Pod": pod("p", schedulerName="moorage"), "NodeNames": ["n"]}
                async with session.post(f"{extender}/filter", json=call) as response:
                    assert response.status == 200
            assert api.cluster.store.revision == revision
            command.signal(signal.SIGINT)
            assert await command.ended() == (0, "")
            assert command.processes() == []
            assert list(command.home.iterdir()) == []


async def kubectl(command: Command, *arguments: str, stdin: str = "") -> str:
    """Run kubectl with the kubeconfig that the command printed."""
    program = needed("kubectl")
    (line,) = (line for line in command.lines if line.startswith("export KUBECONFIG="))
    process = await asyncio.create_subprocess_exec(
        program,
        f"--kubeconfig={line.partition('=')[2]}",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate(stdin.encode())
    assert process.returncode == 0, errors.decode()
    return out.decode()


SLOW = """\
import asyncio

from moorage import FilterPlugin

class Slow(FilterPlugin):
    async def prepare(self, pod, nodes):
        if pod.name >= "pod-3":
            await asyncio.sleep(3600)

    def filter_node(self, pod, node):
        return None
"""


async def test_what_was_decided_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pod(f"pod-{i}") for i in range(10)))
    async with moorage(
        tmp_path, "up", "--once", "--plugin", file, "--nodes=2", "--pods=pods.yaml"
    ) as command:
        await command.line("export KUBECONFIG=")
        async with asyncio.timeout(PATIENCE), Api(command.api) as api:
            async for _ in api.follow(PODS):
                pods, _ = await api.list(PODS)
                if sum("nodeName" in pod["spec"] for pod in pods) == 3:
                    break
        command.signal(signal.SIGINT)
        assert await command.ended() == (130, "")
        assert "Interrupted; this has been decided so far:" in command.lines
        places = {name: place for name, (place, _) in command.rows().items()}
        assert all(places[f"default/pod-{i}"].startswith("node-") for i in range(3))
        assert set(places.values()) - {"pending"} <= {"node-0000", "node-0001"}
        assert any(line.startswith("3 of 10 pods bound, ") for line in command.lines)
        assert command.processes() == []
        assert list(command.home.iterdir()) == []
