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
from typing import Any

import msgspec
from aiohttp import web

from cli.conformance.recordings import recording_file
from cli.up.processes import free_ports
from moorage_host.kube import KubeClient, connect
from tools.build import find, scheduler_version
from tools.planes.embedded import Object
from tools.planes.real import RealPlane
from tools.waiting import until

PROFILE = "rec"
NGINX = "docker.io/library/nginx:1.7.9"
AMOUNTS = {"ephemeral-storage": "100Gi", "example.com/gpu": "4", "memory": "16Gi", "pods": "20"}
FREE = {"cpu": "7800m", "ephemeral-storage": "90Gi", "memory": "15Gi"}
FORECAST = {"mean-free-cpu": "2500", "std-free-cpu": "400"}


def _node(number: int) -> Object:
    name = f"worker-{number}"
    labels = {
        "disk": "hdd" if number == 5 else "ssd",
        "gen": str(number + 2),
        "kubernetes.io/hostname": name,
        "nodeGroup": str(number % 3),
        "zone": f"z{number % 2}",
    }
    capacity = {"cpu": "8", **AMOUNTS}
    status: Object = {
        "capacity": capacity,
        "allocatable": capacity | FREE,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    if number in (1, 4):
        digest = "nginx@sha256:" + "b" * 64
        status["images"] = [{"names": [NGINX, digest], "sizeBytes": 91_000_000}]
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": FORECAST},
        "spec": {"taints": [taint] if number == 2 else []},
        "status": status,
    }


def _priority_class(name: str, value: int) -> Object:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def _pod(name: str, image: str, cpu: str = "", *, namespace: str = "", **fields: Any) -> Object:
    container: Object = {"name": "c", "image": image}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata = {"name": name, "namespace": namespace or "default"}
    metadata |= {"labels": fields.pop("labels", {})}
    spec = {"schedulerName": PROFILE, "containers": [container], **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _in(key: str, *values: str, operator: str = "In") -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def _rich() -> Object:
    """Build a pod with affinities, tolerations and text that JSON encoders of Go escape."""
    required = {"matchExpressions": [_in("zone", "z0", "z1"), _in("gen", "3", operator="Gt")]}
    preferred = {"matchExpressions": [_in("disk", "hdd", operator="NotIn")]}
    near = {"labelSelector": {"matchLabels": {"app": "plain"}}, "topologyKey": "zone"}
    apart = {
        "labelSelector": {"matchExpressions": [_in("app", "rich")]},
        "topologyKey": "kubernetes.io/hostname",
    }
    when, later = "requiredDuringScheduling", "preferredDuringScheduling"
    ignored = "IgnoredDuringExecution"
    affinity = {
        "nodeAffinity": {
            when + ignored: {"nodeSelectorTerms": [required]},
            later + ignored: [{"weight": 7, "preference": preferred}],
        },
        "podAffinity": {later + ignored: [{"weight": 3, "podAffinityTerm": near}]},
        "podAntiAffinity": {when + ignored: [apart]},
    }
    web = {
        "name": "a",
        "image": NGINX,
        "env": [{"name": "PASSWORD", "value": 's3cret "quoted"'}],
        "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
        "resources": {
            "limits": {"cpu": "1", "memory": "128Mi"},
            "requests": {"cpu": "250m", "ephemeral-storage": "1Gi", "memory": "64Mi"},
        },
    }
    gpus = {
        "name": "b",
        "image": "registry.example.com/x@sha256:" + "a" * 64,
        "resources": {
            "limits": {"example.com/gpu": "2"},
            "requests": {"cpu": 1, "example.com/gpu": "2", "memory": 1_000_000_000},
        },
    }
    init = {"requests": {"cpu": "1500m", "memory": "1Gi"}}
    sidecar = {"requests": {"cpu": "0.05", "memory": "128e6"}}
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "rich"}},
    }
    pod = _pod(
        "rich",
        "",
        labels={"app": "rich", "nodeGroup": "1", "tekton.dev/pipelineRun": "run-1"},
        affinity=affinity,
        containers=[web, gpus],
        initContainers=[
            {"name": "init", "image": "busybox", "resources": init},
            {
                "name": "side",
                "image": "busybox:1",
                "resources": sidecar,
                "restartPolicy": "Always",
            },
        ],
        nodeSelector={"disk": "ssd"},
        priorityClassName="high",
        terminationGracePeriodSeconds=5,
        tolerations=[
            {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        topologySpreadConstraints=[spread],
        volumes=[
            {"name": "v", "emptyDir": {}},
            {"name": "cm", "configMap": {"name": "nope", "optional": True}},
        ],
    )
    pod["metadata"]["annotations"] = {"note": "<b>&amp;\xe9\u6f22\u5b57\u2028</b>"}
    return pod


def _filler(number: int) -> Object:
    return _pod(
        f"filler-{number}",
        "f:1",
        "6",
        labels={"app": "filler"},
        priorityClassName="low",
        terminationGracePeriodSeconds=0,
        tolerations=[{"operator": "Exists"}],
    )


CLUSTER = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}},
    _priority_class("high", 100_000),
    _priority_class("low", 10),
    *map(_node, range(6)),
]

FIRST = [
    _pod("plain", "nginx:1.7.9", labels={"app": "plain"}),
    _rich(),
    _pod(
        "best-effort-in-team", "a:b", namespace="team-a", labels={"tekton.dev/pipelineRun": "run-1"}
    ),
]
"""Pods that many nodes can take."""

FILLERS = [_filler(number) for number in range(1, 7)]
"""One for each node; the last of them has one feasible node, so that nothing is scored."""

PREEMPTOR = _pod("preemptor", "p:1", "5", priorityClassName="high")
"""A pod that evicts a filler."""


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
        for pod in FIRST:
            await _place(plane, recorder, pod)
        await _kubectl(plane, "delete", FIRST, "--grace-period=0", "--force")
        for pod in FILLERS:
            await _place(plane, recorder, pod)
        await _place(plane, recorder, PREEMPTOR)
        await _kubectl(plane, "delete", [*FILLERS, PREEMPTOR], "--grace-period=0", "--force")
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
