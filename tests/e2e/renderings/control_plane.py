"""The cluster's own kube-scheduler as a static pod, changed as a rendering wants it."""

import base64
import shutil
from pathlib import Path

import jsonpatch
import yaml

from sandbox.apiserver.server import kubeconfig
from tests.e2e.renderings.cluster import Cluster
from tests.e2e.renderings.node.network import KUBERNETES

HERE = Path(__file__).parent
CONFIG_MAP = "control-plane"
PATCH = "kubeadm-patch.yaml"
PLACES = {
    "kube-scheduler-config.yaml": "etc/kubernetes/moorage-scheduler.yaml",
    "plain-scheduler-config.yaml": "etc/kubernetes/moorage-plain-scheduler.yaml",
}
"""Where docs/how-to/kubeadm.md puts the configurations on the node."""
KUBECONFIG = "etc/kubernetes/scheduler.conf"
CERTIFICATE = "etc/moorage/tls"
USER = "system:kube-scheduler"


async def run_static_pods(cluster: Cluster, data: dict[str, str], certificate: Path) -> None:
    """Do on a node of the control plane what the rendering's ConfigMap is for.

    Args:
        cluster: The cluster.
        data: The content of the ConfigMap.
        certificate: The folder of the certificate with which kube-scheduler calls Moorage.
    """
    _write_files(cluster.api.host, data, certificate)
    for name in PLACES.keys() & data.keys():
        profiles = yaml.safe_load(data[name])["profiles"]
        cluster.node.schedulers |= {each["schedulerName"] for each in profiles}
    _write_kubeconfig(cluster)
    usual = yaml.safe_load((HERE / "kubeadm.yaml").read_text())
    patched = jsonpatch.apply_patch(usual, yaml.safe_load(data[PATCH]))
    further = [
        manifest
        for text in data.values()
        for manifest in yaml.safe_load_all(text)
        if isinstance(manifest, dict) and manifest.get("kind") == "Pod"
    ]
    for manifest in (patched, *further):
        await cluster.node.run_static(manifest)


def _write_files(host: Path, data: dict[str, str], certificate: Path) -> None:
    shutil.copytree(certificate, host / CERTIFICATE)
    (host / KUBECONFIG).parent.mkdir(parents=True)
    for name in PLACES.keys() & data.keys():
        (host / PLACES[name]).write_text(data[name])


def _write_kubeconfig(cluster: Cluster) -> None:
    """Write kube-scheduler's own as kubeadm does, with everything in one file."""
    made = cluster.plane.authority.sign("kube-scheduler", USER)
    authority = cluster.directory / "certificates" / "apiserver.crt"
    user = _inline("client-certificate", made.crt) | _inline("client-key", made.key)
    given = _inline("certificate-authority", authority)
    config = kubeconfig(f"https://{KUBERNETES}:443", "own", cluster=given, user=user)
    (cluster.api.host / KUBECONFIG).write_text(yaml.safe_dump(config))


def _inline(name: str, file: Path) -> dict[str, str]:
    return {f"{name}-data": base64.b64encode(file.read_bytes()).decode()}
