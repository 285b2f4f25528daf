"""`moorage explain` with a kubeconfig alone: to the gateway through a real API server."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
import yaml

from cli.certs.certificates import secrets
from tests.cli.support import ran
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.kubelet import HOST, kubelet
from tools.planes.objects import node, pod
from tools.planes.real import OUR_NAMESPACE, RealPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

CORE = f"/api/v1/namespaces/{OUR_NAMESPACE}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{OUR_NAMESPACE}/leases"
ASKED = ("authentication", "authorization")
REASON = "its schedulerName is nobody, which no profile serves"
"""Why the pod waits, which only the gateway knows."""


def gateway_pod(name: str, port: int) -> Object:
    probe = {"httpGet": {"path": "/readyz", "port": "admin", "scheme": "HTTPS"}}
    container = {
        "name": "moorage",
        "image": "moorage",
        "command": ["python", "-m", "moorage_apps", "gateway"],
        "ports": [{"name": "admin", "containerPort": port}],
        "readinessProbe": probe,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    restricted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    labels = {"app.kubernetes.io/part-of": "moorage"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "nodeName": "machine",
            "securityContext": restricted,
            "containers": [container],
        },
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory, folders: Path) -> AsyncIterator[World]:
    """Moorage with certificates; its gateway is a pod, another one of which stands by."""
    forward, kubelets = map(tmp_path_factory.mktemp, ("forward", "kubelet"))
    async with World.bare(RealPlane(forward)) as bare, kubelet(kubelets) as port:
        await bare.create(node("n1"))
        await machine(bare, port)
        async with bare.with_moorage(through_proxy=False, certificates=folders) as world:
            admin = int(world.services.admin.rpartition(":")[2])
            await run(world, gateway_pod("gateway-a", 1))
            await run(world, gateway_pod("gateway-b", admin))
            await world.create(pod("web", "nobody"))
            yield world


async def machine(world: World, port: int) -> None:
    """Create the node of the gateways, with our kubelet."""
    status = {
        "addresses": [{"type": "InternalIP", "address": HOST}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    obj = {**node("machine"), "spec": {"unschedulable": True}}
    await world.create(obj)
    path = "/api/v1/nodes/machine/status"
    (await world.request("PATCH", path, {"status": status})).check()


async def run(world: World, obj: Object) -> None:
    (await world.request("POST", f"{CORE}/pods", obj)).check()
    path = f"{CORE}/pods/{obj['metadata']['name']}/status"
    (await world.request("PATCH", path, {"status": {"phase": "Running"}})).check()


async def account(world: World, directory: Path, name: str, *roles: str) -> Path:
    """Return a kubeconfig with the token of a new account that has these ClusterRoles."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    (await world.request("POST", accounts, {"metadata": {"name": name}})).check()
    for role in roles:
        binding = {
            "metadata": {"name": f"{name}-{role}"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        }
        (await world.request("POST", f"{RBAC}/clusterrolebindings", binding)).check()
    answer = await world.request("POST", f"{accounts}/{name}/token", {})
    token = msgspec.json.decode(answer.check().body)["status"]["token"]
    file = directory / f"{name}.kubeconfig"
    assert isinstance(world.plane, RealPlane)
    world.plane.write_kubeconfig(file, {"token": token})
    return file


async def printed(kubeconfig: Path, *words: str) -> str:
    _, out = await ran(*words, f"--kubeconfig={kubeconfig}")
    return out


async def explained(kubeconfig: Path, *options: str) -> str:
    return (await printed(kubeconfig, "explain", "default/web", *options)).partition("\n")[0]


async def test_an_administrator_needs_a_kubeconfig_alone(world: World, folders: Path) -> None:
    config = world.plane.kubeconfig("admin")
    # Neither pod is ready here: the Lease says which one decides.
    lease: Object = {
        "metadata": {"name": "moorage-gateway"},
        "spec": {"holderIdentity": "gateway-b_0123"},
    }
    (await world.request("POST", LEASES, lease)).check()
    line = await explained(config)
    assert "give --ca-file FILE for a bearer token, or --tls DIR" in line, line
    assert REASON in await explained(config, f"--tls={folders / 'operator'}")
    for secret in yaml.safe_load_all(secrets(folders, OUR_NAMESPACE, ["operator"])):
        (await world.request("POST", f"{CORE}/secrets", secret)).check()
    assert REASON in await explained(config)
    assert REASON in await explained(config, "--gateway=moorage/gateway-b")
    line = await explained(config, "--gateway=moorage/gateway-a")
    assert "connection refused" in line, line
    line = await explained(config, "--gateway=default")
    assert "no gateway runs in namespace default: give --admin URL, or --gateway" in line, line
    lease["spec"]["holderIdentity"] = "gateway-a_0123"
    (await world.request("PATCH", f"{LEASES}/moorage-gateway", lease)).check()
    assert "connection refused" in await explained(config)
    lease["spec"]["holderIdentity"] = "gateway-b_0123"
    (await world.request("PATCH", f"{LEASES}/moorage-gateway", lease)).check()


async def test_others_need_rights_and_show_their_token(
    world: World, folders: Path, tmp_path: Path
) -> None:
    rights = {"forward": ("pods/portforward", ["get", "create"]), "see": ("pods", ["get", "list"])}
    for name, (resource, verbs) in rights.items():
        rule = {"apiGroups": [""], "resources": [resource], "verbs": verbs}
        role = {"metadata": {"name": name}, "rules": [rule]}
        (await world.request("POST", f"{RBAC}/clusterroles", role)).check()
    believed = f"--ca-file={folders / 'ca' / 'ca.crt'}"
    ann = await account(world, tmp_path, "ann", "see", "forward", "moorage-decisions")
    bob = await account(world, tmp_path, "bob", "see", "forward")
    cid = await account(world, tmp_path, "cid", "see", "moorage-decisions")
    assert REASON in await explained(ann, believed, "--gateway=moorage/gateway-b")
    line = await explained(bob, believed, "--gateway=moorage/gateway-b")
    assert "ClusterRole with this right" in line, line
    line = await explained(cid, believed, "--gateway=moorage/gateway-b")
    assert "cannot forward a port to pod moorage/gateway-b: " in line, line
    assert "you need the rights get and create on pods/portforward there" in line, line
    line = await explained(ann, "--gateway=moorage/gateway-b")
    assert "give --ca-file FILE for a bearer token" in line, line


async def test_doctor_reads_what_kube_scheduler_runs_with(world: World, folders: Path) -> None:
    """Its file lies on a node; kubeadm's administrators have a certificate that may ask it."""
    plane = world.plane
    assert isinstance(plane, RealPlane)
    extender = {"urlPrefix": "https://127.0.0.1:8888", "filterVerb": "filter"}
    profiles = [{"schedulerName": "moorage"}]
    kind = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
    scheduler = plane.scheduler(
        "asked",
        {
            "apiVersion": kind[0],
            "kind": kind[1],
            "leaderElection": {"leaderElect": False},
            "profiles": profiles,
            "extenders": [{**extender, "enableHTTPS": True, "httpTimeout": "2h"}],
        },
    )
    asked = [f"--{each}-kubeconfig={plane.kubeconfig('admin')}" for each in ASKED]
    scheduler.command = [*scheduler.command, *asked]
    await scheduler.start()
    try:
        container = {"name": "s", "image": "kube-scheduler:v1.37.2", "command": scheduler.command}
        spec = {"nodeName": "machine", "hostNetwork": True, "containers": [container]}
        path = "/api/v1/namespaces/kube-system/pods"
        obj = {"metadata": {"name": "kube-scheduler-machine"}, "spec": spec}
        (await world.request("POST", path, obj)).check()
        status = {"status": {"phase": "Running"}}
        (await world.request("PATCH", f"{path}/kube-scheduler-machine/status", status)).check()
        tls = f"--tls={folders / 'operator'}"
        out = await printed(plane.kubeconfig("admin"), "doctor", tls, "-o", "json")
    finally:
        await scheduler.stop()
    place = "extenders[0] in /configz of kube-system/kube-scheduler-machine"
    assert f"{place}: httpTimeout is 7200s: one call that hangs stops all" in out, out
