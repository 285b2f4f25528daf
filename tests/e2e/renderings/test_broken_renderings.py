"""What is wrong with a rendering shows, and where: the run of the good ones means something."""

from copy import deepcopy
from pathlib import Path

import pytest

from moorage_host.kube.response import KubeStatusError
from tests.e2e.renderings.cluster import KubectlError, MissingError
from tests.e2e.renderings.installation import Installation
from tests.e2e.rights import Right, given, used
from tools.image.isolated import Isolated
from tools.manifests.rendering import installed, one
from tools.planes.embedded import Object
from tools.planes.programs import ProgramError


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
    async with Installation.on(tmp_path, image, objects) as installation:
        cluster, log = installation.cluster, installation.cluster.plane.audit_log
        with pytest.raises(KubeStatusError, match='serviceaccount "binder" not found'):
            await installation.install()
        with pytest.raises(MissingError, match='secret "lost-tls" not found'):
            await installation.deploy(one(objects, "Deployment", "filter"))
        with pytest.raises(ProgramError, match="no-such-option"):
            await installation.deploy(one(objects, "Deployment", "scorer"))
        await installation.deploy(one(objects, "Deployment", "gateway"))

        async def is_named() -> bool:
            return "pods is forbidden" in installation.pods[-1].problem

        await installation.until(is_named)
        assert Right("", "pods", "watch") in used(log, "gateway", "forbid")
        idle = given("gateway", objects) - used(log, "gateway")
        assert Right("", "secrets", "list") in idle
        assert Right("", "nodes", "list") not in idle
        wrong = deepcopy(one(good, "Deployment", "gateway"))
        wrong["spec"]["replica"] = 1
        with pytest.raises(KubectlError, match=r"\.spec\.replica: field not declared in schema"):
            await cluster.apply([wrong])
        unsafe = one(good, "Deployment", "filter")
        del pod_of(unsafe)["securityContext"]
        with pytest.raises(KubeStatusError, match='violates PodSecurity "restricted'):
            await installation.create(unsafe, 1)


def pod_of(deployment: Object) -> Object:
    spec: Object = deployment["spec"]["template"]["spec"]
    return spec
