"""What `moorage doctor` finds in a rendering that runs, through the real API server."""

import asyncio
from collections.abc import Iterable
from functools import partial

from cli.doctor.checks import findings
from cli.doctor.installation.installation import read_installation
from cli.shared.gateway.options import GatewayOptions
from tests.e2e.renderings.cluster import NODES, Cluster
from tests.e2e.renderings.installation import OUR_NAMESPACE, Installation
from tests.e2e.renderings.node.pods import Pod
from tools.planes.kubelet import HOST, Streams, kubelet

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{OUR_NAMESPACE}/deployments"

EXPECTED = {
    "ok": "nothing is wrong",
    "not checked": "a rendering need not have everything",
}
"""Levels of findings that are no fault of a rendering."""


async def examined(installation: Installation) -> list[str]:
    """Return what doctor finds wrong, with its advice."""
    cluster = installation.cluster
    pods = cluster.node.pods
    await _control(installation, pods)
    options = GatewayOptions(
        kubeconfig=cluster.plane.kubeconfig("admin"), tls=installation.certificates / "operator"
    )
    folder = cluster.directory / "kubelet"
    folder.mkdir()
    async with kubelet(folder, partial(_connect, cluster)) as port:
        for name in NODES:
            status = {
                "addresses": [{"type": "InternalIP", "address": HOST}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            }
            path = f"/api/v1/nodes/{name}/status"
            await cluster.api.call("PATCH", path, {"status": status})
        read = await read_installation(options, None)
    lost = {"leader"} if len(pods) < _wanted(installation) else set()
    return [
        f"{each.level}: {each.check}: {each.evidence}; change: {each.change}"
        for each in findings(read)
        if each.level not in EXPECTED and each.check not in lost
    ]


async def _connect(cluster: Cluster, pod: str, port: int) -> Streams:
    """Connect from the node, whose network this machine does not have."""
    (address,) = (each.endpoint.address for each in cluster.node.pods if each.name == pod)
    own = cluster.node.network.node.open()
    await asyncio.get_running_loop().sock_connect(own, (address, port))
    return await asyncio.open_connection(sock=own)


def _wanted(installation: Installation) -> int:
    """Return how many pods there were before the gateway that led was ended."""
    deployments = (obj for obj in installation.objects if obj["kind"] == "Deployment")
    return sum(obj["spec"].get("replicas", 1) for obj in deployments)


async def _control(installation: Installation, pods: Iterable[Pod]) -> None:
    """Write what controllers would: the status of Deployments."""
    api = installation.cluster.api
    ready = [pod for pod in pods if pod.ready]
    for obj in installation.objects:
        if obj["metadata"].get("namespace") != OUR_NAMESPACE:
            continue
        name = obj["metadata"]["name"]
        if obj["kind"] == "Deployment":
            count = sum(pod.name.startswith(f"{name}-") for pod in ready)
            status = {"replicas": obj["spec"].get("replicas", 1), "readyReplicas": count}
            await api.call("PATCH", f"{DEPLOYMENTS}/{name}/status", {"status": status})
