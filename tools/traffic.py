"""Records every request that a real kube-scheduler sends to an extender, for `make test`.

By hand: python -m tools.traffic

The same ten pods come once with node names (nodeCacheCapable) and once with whole nodes. kubectl
creates everything, so that the objects look as those of users. KUBERNETES=1.36 records another
minor version, SCHEDULER=1.30 a kube-scheduler that is older than the API server. The recordings
are compressed, always to the same bytes.
"""

import asyncio
import gzip
import json
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import yaml

from moorage_host.kube import KubeClient
from tools.build import find, scheduler_version
from tools.inprocess.extender import Call, ScriptedExtender
from tools.planes.embedded import Object
from tools.planes.real import RealPlane, real_plane
from tools.recordings import recording_file
from tools.waiting import until

PROFILE = "rec"
"""What the pods in the file write into spec.schedulerName."""

OBJECTS = list(yaml.safe_load_all(Path(__file__).with_suffix(".yaml").read_text()))
CLUSTER = [obj for obj in OBJECTS if obj["kind"] != "Pod"]
PODS = [obj for obj in OBJECTS if obj["kind"] == "Pod"]
FIRST = 3
"""How many pods are deleted before the others come."""

RECORDED_HOST = "127.0.0.1:18200"
"""What is recorded as the Host header: the port is another one in each run."""


async def _bind(client: KubeClient, args: Object) -> Object:
    """Bind a pod, with the rights of *client*."""
    namespace, name = args["PodNamespace"], args["PodName"]
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": args["PodUID"]},
        "target": {"kind": "Node", "name": args["Node"]},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    answer = await client.request("POST", path, body=msgspec.json.encode(body), timeout=30)
    return {"Error": "" if answer.status < 300 else answer.body.decode()}


def _written(call: Call) -> str:
    """Return what is kept of a request: a line of JSON."""
    headers = {name: value for name, value in call.headers if name != "Host"}
    record = {"verb": call.verb, "headers": {"Host": RECORDED_HOST, **headers}}
    return json.dumps({**record, "body": call.body.decode()}) + "\n"


TIMEOUT = 60.0
MODES = {"names": True, "nodes": False}


async def record() -> None:
    """Write both files."""
    version = scheduler_version()
    async with real_plane() as (plane, client):
        await _kubectl(plane, "create", CLUSTER)
        for mode, names_only in MODES.items():
            extender = ScriptedExtender()
            extender.on["bind"] = partial(_bind, client)
            await extender.start()
            try:
                await _conversation(plane, extender, names_only=names_only)
            finally:
                await extender.stop()
            text = "".join(map(_written, extender.calls))
            file = recording_file(f"{version}-{mode}")
            file.write_bytes(gzip.compress(text.encode(), mtime=0))


async def _conversation(plane: RealPlane, extender: ScriptedExtender, *, names_only: bool) -> None:
    """Let a kube-scheduler place all pods in turn."""
    program = plane.scheduler("recorded", _configuration(extender.url, names_only=names_only))
    await program.start()
    try:
        for pods in (PODS[:FIRST], PODS[FIRST:]):
            for pod in pods:
                await _place(plane, extender, pod)
            await _kubectl(plane, "delete", pods, "--grace-period=0", "--force")
    finally:
        await program.stop()


async def _place(plane: RealPlane, extender: ScriptedExtender, pod: Object) -> None:
    """Create a pod and wait until the extender has bound it."""
    name = pod["metadata"]["name"]
    await _kubectl(plane, "apply", [pod])

    def is_bound() -> bool:
        return extender.verbs(name)[-1:] == ["bind"]

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
