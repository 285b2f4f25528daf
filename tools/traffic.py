"""Records every request that a real kube-scheduler sends to an extender, for `make test`.

By hand: python -m tools.traffic

The same ten pods come once with node names (nodeCacheCapable) and once with whole nodes. kubectl
creates everything, so that the objects look as those of users. KUBERNETES=1.36 records another
minor version, SCHEDULER=1.30 a kube-scheduler that is older than the API server. Users get the
recordings with `moorage conformance`, so they are compressed, always to the same bytes.
"""

import asyncio
import gzip
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import yaml
from aiohttp import web

from cli.conformance.recordings import recording_file
from cli.up.processes import free_ports
from moorage_host.kube import KubeClient, connect
from tools.build import find, scheduler_version
from tools.planes.embedded import Object
from tools.planes.real import RealPlane
from tools.waiting import until

PROFILE = "rec"
"""What the pods in the file write into spec.schedulerName."""

OBJECTS = list(yaml.safe_load_all(Path(__file__).with_suffix(".yaml").read_text()))
CLUSTER = [obj for obj in OBJECTS if obj["kind"] != "Pod"]
PODS = [obj for obj in OBJECTS if obj["kind"] == "Pod"]
FIRST = 3
"""How many pods are deleted before the others come."""

HOST = "127.0.0.1"
RECORDED_HOST = f"{HOST}:18200"
"""What is recorded as the Host header: the port is another one in each run."""


class Recorder:
    """What an extender was asked.

    Attributes:
        url: The URL prefix of the extender.
        lines: A line of JSON for each request.
    """

    def __init__(self, url: str, client: KubeClient) -> None:
        self.url = url
        self.lines: list[str] = []
        self._client = client

    async def __call__(self, request: web.Request) -> web.Response:
        """Record a request and answer it."""
        verb = request.match_info["verb"]
        body = (await request.read()).decode()
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        record = {"verb": verb, "headers": {"Host": RECORDED_HOST, **headers}, "body": body}
        self.lines.append(json.dumps(record))
        args = json.loads(body)
        if verb == "bind":
            return web.json_response({"Error": await self._bind(args)})
        return web.json_response(ANSWERS[verb](args))

    async def _bind(self, args: Object) -> str:
        namespace, name = args["PodNamespace"], args["PodName"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": args["PodUID"]},
            "target": {"kind": "Node", "name": args["Node"]},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        answer = await self._client.request(
            "POST", path, body=msgspec.json.encode(body), timeout=30
        )
        return "" if answer.status < 300 else answer.body.decode()


@asynccontextmanager
async def serving(client: KubeClient) -> AsyncIterator[Recorder]:
    """Serve an extender; *client* has the right to bind."""
    (port,) = free_ports(1)
    recorder = Recorder(f"http://{HOST}:{port}", client)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{verb}", recorder)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        yield recorder
    finally:
        await runner.cleanup()


def _filter(args: Object) -> Object:
    return {"Nodes": args["Nodes"], "NodeNames": args["NodeNames"]}


def _prioritize(args: Object) -> list[Object]:
    return []


def _preempt(args: Object) -> Object:
    given = args["NodeNameToMetaVictims"]
    if given is None:
        given = {
            node: {**victims, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
            for node, victims in args["NodeNameToVictims"].items()
        }
    return {"NodeNameToMetaVictims": given}


ANSWERS: dict[str, Callable[[Object], object]] = {
    "filter": _filter,
    "prioritize": _prioritize,
    "preempt": _preempt,
}


TIMEOUT = 60.0
MODES = {"names": True, "nodes": False}


async def record() -> None:
    """Write both files."""
    version = scheduler_version()
    with tempfile.TemporaryDirectory() as name:
        plane = RealPlane(Path(name))
        try:
            await plane.start()
            await _kubectl(plane, "create", CLUSTER)
            client = await connect(plane.kubeconfig("admin"))
            try:
                for mode, names_only in MODES.items():
                    async with serving(client) as recorder:
                        await _conversation(plane, recorder, names_only=names_only)
                    text = "".join(f"{line}\n" for line in recorder.lines)
                    file = recording_file(f"{version}-{mode}")
                    file.write_bytes(gzip.compress(text.encode(), mtime=0))
            finally:
                await client.close()
        finally:
            await plane.stop()


async def _conversation(plane: RealPlane, recorder: Recorder, *, names_only: bool) -> None:
    """Let a kube-scheduler place all pods in turn."""
    program = plane.scheduler("recorded", _configuration(recorder.url, names_only=names_only))
    await program.start()
    try:
        for pods in (PODS[:FIRST], PODS[FIRST:]):
            for pod in pods:
                await _place(plane, recorder, pod)
            await _kubectl(plane, "delete", pods, "--grace-period=0", "--force")
    finally:
        await program.stop()


async def _place(plane: RealPlane, recorder: Recorder, pod: Object) -> None:
    """Create a pod and wait until the extender has bound it."""
    name = pod["metadata"]["name"]
    await _kubectl(plane, "apply", [pod])

    def is_bound() -> bool:
        last = json.loads(recorder.lines[-1]) if recorder.lines else {"verb": ""}
        return last["verb"] == "bind" and json.loads(last["body"])["PodName"] == name

    try:
        await until(is_bound, TIMEOUT)
    except TimeoutError as error:
        raise RuntimeError(f"{name} is not bound within {TIMEOUT:g} s") from error


async def _kubectl(plane: RealPlane, verb: str, objects: Sequence[Object], *options: str) -> None:
    config = f"--kubeconfig={plane.kubeconfig('admin')}"
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    command = [str(find("kubectl")), config, verb, "-f", "-", *options]
    if verb == "delete":
        command.append("--ignore-not-found")
    run = await asyncio.to_thread(
        subprocess.run, command, input=body, text=True, capture_output=True, check=False
    )
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)}: {run.stderr}")


def _configuration(url: str, *, names_only: bool) -> Object:
    extender = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": 1,
        "nodeCacheCapable": names_only,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": PROFILE}],
        "extenders": [extender],
    }


if __name__ == "__main__":
    asyncio.run(record())
