"""The comparison with the release: every layout is recognized, and only real differences count."""

from copy import deepcopy
from typing import Any

import pytest

from cli.doctor.installation.objects import ReadObjects
from cli.doctor.installation.release import differences, likely_layout, path_of, rendered
from tools.manifests.rendering import installed

BY_DEFAULT = {"monitoring": "high-availability", "demo": "second-scheduler"}
"""Layouts that look like another one, which has the same processes."""

LAYOUTS = (
    "second-scheduler",
    "high-availability",
    "sidecar",
    "control-plane",
    "control-plane-strict",
    "monitoring",
    "demo",
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_recognized_by_its_objects(layout: str) -> None:
    every = installed(layout)
    kinds = {"Deployment": "deployments", "ConfigMap": "configmaps"}
    lists = {name: [each for each in every if each["kind"] == kind] for kind, name in kinds.items()}
    assert likely_layout(ReadObjects(lists)) == BY_DEFAULT.get(layout, layout)


def test_the_release_is_compared_in_the_namespace_of_the_gateway() -> None:
    objects = rendered("high-availability", "scheduling")
    spaces = {each["metadata"].get("namespace") for each in objects}
    assert spaces == {"scheduling", "kube-system", None}
    subjects = [subject for each in objects for subject in each.get("subjects") or ()]
    assert "moorage" not in {each.get("namespace") for each in subjects}
    text = str(objects)
    assert "--lease-namespace=scheduling" in text
    assert "https://gateway.scheduling.svc:8888" in text
    assert "moorage-gateway" in text


def deployment() -> dict[str, Any]:
    (found,) = (
        each
        for each in installed("second-scheduler")
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "filter"
    )
    return found


def test_defaults_and_what_users_choose_are_no_differences() -> None:
    live = deepcopy(deployment())
    live["status"] = {"readyReplicas": 2}
    live["spec"]["replicas"] = 5
    live["spec"]["progressDeadlineSeconds"] = 600
    pod = live["spec"]["template"]["spec"]
    pod["tolerations"] = [{"operator": "Exists"}]
    pod["volumes"].insert(0, {"name": "plugins", "configMap": {"name": "plugins"}})
    (container,) = pod["containers"]
    container["image"] = "registry.example.com/moorage:1"
    container["resources"] = {}
    container["args"] = ["--plugin=/plugins"]
    container["readinessProbe"]["successThreshold"] = 1
    assert list(differences(deployment(), live)) == []


def test_what_is_not_as_in_the_release_is_named_with_its_field() -> None:
    live = deepcopy(deployment())
    pod = live["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["readinessProbe"]["httpGet"]["path"] = "/livez"
    container["securityContext"].pop("readOnlyRootFilesystem")
    container["command"].pop()
    pod["volumes"] = [each for each in pod["volumes"] if each["name"] != "tls"]
    place = "spec.template.spec.containers[moorage]"
    secret = "{name: tls, secret: {defaultMode: 288, secretName: filter-tls}}"
    assert set(differences(deployment(), live)) == {
        f"{place}.readinessProbe.httpGet.path is /livez, but /readyz in the release",
        f"{place}.securityContext.readOnlyRootFilesystem is not set, but true in the release",
        f"{place}.command lacks services.filter",
        f"spec.template.spec.volumes[tls] is not set, but {secret} in the release",
    }


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        (
            "NetworkPolicy",
            "gateway",
            "/apis/networking.k8s.io/v1/namespaces/moorage/networkpolicies/gateway",
        ),
        ("Service", "gateway", "/api/v1/namespaces/moorage/services/gateway"),
        (
            "ClusterRole",
            "moorage-gateway",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/moorage-gateway",
        ),
        ("Namespace", "moorage", "/api/v1/namespaces/moorage"),
    ],
)
def test_each_object_has_its_path(kind: str, name: str, path: str) -> None:
    objects = rendered("second-scheduler", "moorage")
    (found,) = (o for o in objects if (o["kind"], o["metadata"]["name"]) == (kind, name))
    assert path_of(found) == path
