"""A kustomize folder of one's own: a layout, components, an image, a policy and plugins."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cli.install.scheduling import configuration_for
from moorage_host.policy import Kind, ResolvedPolicy

KUSTOMIZE = Path(__file__).resolve().parents[2] / "deploy" / "kustomize"
"""The files that come with Moorage, in a checkout and in a wheel."""

NAMESPACE = "moorage"
PLUGINS = "/plugins"
SERVICES: dict[Kind, str] = {"filter": "filter", "score": "scorer", "bind": "binder"}
CONTROL_PLANE = "control-plane"
STRICT = "control-plane-strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What is installed.

    Attributes:
        layout: How kube-scheduler and the gateway are put together: a folder of overlays.
        components: What else: folders of components.
        image: The image of all processes but kube-scheduler; empty: the one of the files.
        kubernetes: The version of kube-scheduler, such as v1.36.1; empty: the one of the files.
        address: The fixed address of the gateway's Service, for the cluster's own kube-scheduler.
        policy: The policy instead of the one of the files.
        policy_text: Its text.
        plugins: Python files with plugins.
        kinds: Their kinds.
    """

    layout: str
    components: tuple[str, ...] = ()
    image: str = ""
    kubernetes: str = ""
    address: str = ""
    policy: ResolvedPolicy | None = None
    policy_text: str = ""
    plugins: tuple[Path, ...] = ()
    kinds: tuple[Kind, ...] = ()

    @property
    def has_cert_manager(self) -> bool:
        """Whether cert-manager makes the certificates."""
        overlay = KUSTOMIZE / "overlays" / self.layout / "kustomization.yaml"
        parts = yaml.safe_load(overlay.read_text()).get("components") or ()
        names = (*self.components, *(Path(part).name for part in parts))
        return "cert-manager" in names


def layouts() -> list[str]:
    """Return the names of the layouts."""
    return sorted(folder.name for folder in (KUSTOMIZE / "overlays").iterdir())


def components() -> list[str]:
    """Return the names of the components that are no layouts."""
    found = {folder.name for folder in (KUSTOMIZE / "components").iterdir()}
    return sorted(found - {CONTROL_PLANE, "sidecar", "plain-scheduler"})


def write(bundle: Bundle, folder: Path) -> None:
    """Write the kustomize files of a bundle into a folder.

    Raises:
        InstallError: The policy does not go with the layout.
    """
    shutil.copytree(KUSTOMIZE, folder / "kustomize")
    document: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"kustomize/overlays/{bundle.layout}"],
        "components": [f"kustomize/components/{name}" for name in bundle.components],
        "images": _images(bundle),
        "configMapGenerator": _files(bundle, folder),
        "patches": [
            *([_with_address(bundle.address)] if bundle.address else ()),
            *(_with_plugins(SERVICES[kind]) for kind in bundle.kinds),
        ],
    }
    given = {key: value for key, value in document.items() if value}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(given, sort_keys=False))


def _images(bundle: Bundle) -> list[dict[str, str]]:
    images = []
    if bundle.image:
        name, _, digest = bundle.image.partition("@")
        path, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:  # the colon of a port
            path, tag = name, ""
        image = {"name": "moorage", "newName": path, "newTag": tag, "digest": digest}
        images.append({key: value for key, value in image.items() if value})
    if bundle.kubernetes:
        images.append({"name": "registry.k8s.io/kube-scheduler", "newTag": bundle.kubernetes})
    return images


def _files(bundle: Bundle, folder: Path) -> list[dict[str, Any]]:
    maps: list[dict[str, Any]] = []
    if bundle.policy is not None:
        (folder / "policy.yaml").write_text(bundle.policy_text)
        maps.append(_map("policy", "policy.yaml"))
    if bundle.policy is not None or bundle.address:
        is_control_plane = bundle.layout.startswith(CONTROL_PLANE)
        name = CONTROL_PLANE if is_control_plane else "kube-scheduler"
        shipped = KUSTOMIZE / _configuration(bundle.layout)
        text = shipped.read_text()
        if bundle.address:
            text = re.sub(r"https://[^:/]+:8888", f"https://{bundle.address}:8888", text)
        if bundle.policy is not None:
            text = configuration_for(text, bundle.policy)
        (folder / shipped.name).write_text(text)
        maps.append(_map(name, shipped.name))
    if bundle.kubernetes and bundle.layout == STRICT:
        shipped = KUSTOMIZE / "components" / "plain-scheduler" / "plain-scheduler.yaml"
        text = re.sub(r"(kube-scheduler:)v\S+", rf"\1{bundle.kubernetes}", shipped.read_text())
        (folder / shipped.name).write_text(text)
        maps.append(_map(CONTROL_PLANE, shipped.name))
    if bundle.plugins:
        for path in bundle.plugins:
            shutil.copyfile(path, folder / path.name)
        names = [path.name for path in bundle.plugins]
        maps.append({"name": "plugins", "namespace": NAMESPACE, "files": names})
    return maps


def _configuration(layout: str) -> str:
    places = {
        CONTROL_PLANE: "components/control-plane",
        STRICT: "components/plain-scheduler",
    }
    return f"{places.get(layout, 'base')}/kube-scheduler-config.yaml"


def _map(name: str, file: str) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE, "behavior": "merge", "files": [file]}


def _with_address(address: str) -> dict[str, Any]:
    patch = [{"op": "add", "path": "/spec/clusterIP", "value": address}]
    return {"target": {"kind": "Service", "name": "gateway"}, "patch": yaml.safe_dump(patch)}


def _with_plugins(deployment: str) -> dict[str, Any]:
    pod = "/spec/template/spec"
    changes: Sequence[dict[str, Any]] = (
        {
            "op": "add",
            "path": f"{pod}/volumes/-",
            "value": {"name": "plugins", "configMap": {"name": "plugins"}},
        },
        {
            "op": "add",
            "path": f"{pod}/containers/0/volumeMounts/-",
            "value": {"name": "plugins", "mountPath": PLUGINS, "readOnly": True},
        },
        {"op": "add", "path": f"{pod}/containers/0/args", "value": [f"--plugin={PLUGINS}"]},
    )
    patch = yaml.safe_dump(list(changes), sort_keys=False)
    return {"target": {"kind": "Deployment", "name": deployment}, "patch": patch}
