"""The annotator's manifests: they can be patched, are safe, and run a program that there is."""

import subprocess
from pathlib import Path

import pytest
import yaml

from cli.certs.certificates import IDENTITIES
from moorage_host.settings import parse_settings
from services.annotator.settings import AnnotatorSettings
from tools.build import find
from tools.docs.pages import blocks
from tools.manifests.rendering import Manifest, one, render, rendered


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """What the documentation shows: a rendering with the annotator, patched."""
    folder = tmp_path_factory.mktemp("overlay")
    (overlay,) = (b.text for b in blocks("yaml") if "name: annotator}" in b.text)
    (folder / "moorage.yaml").write_text(rendered({"annotator": {"enabled": True}}))
    (folder / "kustomization.yaml").write_text(overlay)
    done = subprocess.run(
        [str(find("kubectl")), "kustomize", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def pod(built: list[Manifest]) -> Manifest:
    found: Manifest = one(built, "Deployment", "annotator")["spec"]["template"]["spec"]
    return found


def test_it_may_list_and_patch_nodes_and_nothing_else(built: list[Manifest]) -> None:
    assert one(built, "ClusterRole", "moorage-annotator")["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch"]}
    ]
    binding = one(built, "ClusterRoleBinding", "moorage-annotator")
    assert binding["roleRef"]["name"] == "moorage-annotator"
    (subject,) = binding["subjects"]
    account = one(built, "ServiceAccount", subject["name"])["metadata"]
    assert subject["namespace"] == account["namespace"]
    assert pod(built)["serviceAccountName"] == account["name"]
    roles = [m for m in built if m["kind"].endswith("RoleBinding")]
    names = [m["metadata"]["name"] for m in roles for s in m["subjects"] if s == subject]
    assert names == ["moorage-annotator"]


def test_it_is_probed_where_it_answers_and_has_bounds(built: list[Manifest]) -> None:
    (container,) = pod(built)["containers"]
    port = AnnotatorSettings().admin_port
    assert container["ports"] == [{"name": "admin", "containerPort": port}]
    for probe, path in (("startup", "/livez"), ("liveness", "/livez"), ("readiness", "/readyz")):
        asked = {"path": path, "port": "admin", "scheme": "HTTPS"}
        assert container[f"{probe}Probe"]["httpGet"] == asked
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]


def test_its_admin_port_has_the_certificate_that_is_made_for_it(built: list[Manifest]) -> None:
    (container,) = pod(built)["containers"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "tls")
    (volume,) = (each for each in pod(built)["volumes"] if each["name"] == "tls")
    module = ["python", "-m", "moorage_apps", "services.annotator"]
    assert container["command"] == [*module, f"--tls={mount['mountPath']}"]
    assert mount["readOnly"]
    assert volume["secret"]["secretName"].removesuffix("-tls") in IDENTITIES
    assert pod(built)["securityContext"]["fsGroup"] == 65532


def test_it_never_waits_for_moorage(built: list[Manifest]) -> None:
    assert pod(built)["schedulerName"] == "default-scheduler"
    assert pod(built)["enableServiceLinks"] is False


def test_it_runs_from_the_image_of_the_other_processes(built: list[Manifest]) -> None:
    images = {
        container["image"]
        for m in built
        if m["kind"] == "Deployment" and m["metadata"]["name"] != "scheduler"
        for container in m["spec"]["template"]["spec"]["containers"]
    }
    assert len(images) == 1


def test_the_program_understands_its_arguments(built: list[Manifest], tmp_path: Path) -> None:
    (container,) = pod(built)["containers"]
    mounted = {mount["mountPath"]: tmp_path / mount["name"] for mount in container["volumeMounts"]}
    args = []
    for arg in container["args"]:
        option, _, value = arg.partition("=")
        for place, folder in mounted.items():
            if value.startswith(place):
                folder.mkdir(exist_ok=True)
                (folder / Path(value).name).touch()
                value = value.replace(place, str(folder))
        args.append(f"{option}={value}")
    settings = parse_settings(AnnotatorSettings, "annotator", args)
    assert settings.source().address.startswith("https://")
    assert not settings.once


def test_the_default_arguments_can_be_used() -> None:
    (container,) = pod(render({"annotator": {"enabled": True}}))["containers"]
    parse_settings(AnnotatorSettings, "annotator", list(container["args"])).source()
