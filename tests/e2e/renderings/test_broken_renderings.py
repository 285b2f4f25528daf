"""What is wrong with a rendering shows, and where: the run of the good ones means something."""

import asyncio
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import pytest

from moorage_host.kube.response import KubeStatusError
from tests.e2e.renderings.cluster import Cluster, KubectlError
from tests.e2e.renderings.installation import Installation
from tests.e2e.renderings.node.pods import Pod
from tests.e2e.renderings.rights import Right, given, unused, used
from tools.image.isolated import Isolated
from tools.manifests.rendering import installed, one
from tools.planes.embedded import Object


@pytest.mark.timeout(600)
async def test_what_is_wrong_is_named(tmp_path: Path, image: Isolated) -> None:
    good = installed("second-scheduler")
    objects = deepcopy(good)
    role = one(objects, "ClusterRole", "moorage-gateway")
    role["rules"][0]["resources"] = ["nodes", "secrets"]  # instead of nodes and pods
    one(objects, "ServiceAccount", "binder")["metadata"]["name"] = "bender"
    volumes = pod_of(one(objects, "Deployment", "filter"))["volumes"]
    next(each for each in volumes if each["name"] == "tls")["secret"]["secretName"] = "lost-tls"
    pod_of(one(objects, "Deployment", "scorer"))["containers"][0]["args"] = ["--no-such-option"]
    async with Cluster.started(tmp_path, image) as cluster:
        installation = Installation(cluster, objects)
        with pytest.raises(KubeStatusError, match='serviceaccount "binder" not found'):
            await installation.install()
        for name in ("filter", "gateway", "scorer"):
            await cluster.node.deploy(one(objects, "Deployment", name))

        await problem(cluster.node.pods, "filter", 'secret "lost-tls" not found')
        await problem(cluster.node.pods, "scorer", "no-such-option")
        await problem(cluster.node.pods, "gateway", "pods is forbidden")
        log = cluster.plane.audit_log
        assert Right("gateway", "watch", "pods") in used(log, "forbid")
        idle = {right for right in unused(given(objects), log) if right.account == "gateway"}
        assert Right("gateway", "list", "secrets") in idle
        assert Right("gateway", "list", "nodes") not in idle
        wrong = deepcopy(one(good, "Deployment", "gateway"))
        wrong["spec"]["replica"] = 1
        with pytest.raises(KubectlError, match=r"\.spec\.replica: field not declared in schema"):
            await cluster.apply([wrong])
        unsafe = one(good, "Deployment", "filter")
        del pod_of(unsafe)["securityContext"]
        with pytest.raises(KubeStatusError, match='violates PodSecurity "restricted'):
            await cluster.node.create(unsafe)


def pod_of(deployment: Object) -> Object:
    spec: Object = deployment["spec"]["template"]["spec"]
    return spec


async def problem(pods: list[Pod], name: str, text: str) -> None:
    """Wait until a pod's problem has a text."""
    (pod, *_) = (each for each in pods if each.name.startswith(name))
    with suppress(TimeoutError):
        async with asyncio.timeout(30):
            while text not in pod.problem:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    assert text in pod.problem, pod.problem
