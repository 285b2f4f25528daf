"""Brings a rendered bundle into a cluster."""

from pathlib import Path

import click

from cli.certs.folders import CertificateOptions, identities, keep_certificates
from cli.certs.secrets import secrets
from cli.install.bundle import CONTROL_PLANE, NAMESPACE, Bundle
from cli.install.kubectl import Kubectl
from cli.install.progress import wait_until_ready


def apply(kubectl: Kubectl, bundle: Bundle, manifests: str, *, certs: Path, seconds: float) -> None:
    """Apply the objects, make certificates, and wait.

    Raises:
        InstallError: kubectl failed, or it is not ready in time.
        ConfigurationError: A certificate cannot be written.
    """
    _say(f"objects: {len(kubectl.apply(manifests))} applied")
    if not bundle.has_cert_manager:
        options = CertificateOptions(namespace=NAMESPACE)
        written = keep_certificates(certs, options)
        kubectl.apply(secrets(certs, identities(options), NAMESPACE))
        _say(f"certificates: {sum(written.values())} written to {certs}, keep {certs / 'ca'} safe")
    if bundle.layout.startswith(CONTROL_PLANE):
        _say(
            "kube-scheduler does not ask Moorage yet. What nodes of the control plane need is in "
            f"kubectl -n {NAMESPACE} get configmap {CONTROL_PLANE} -o yaml"
        )
    if seconds:
        wait_until_ready(kubectl, NAMESPACE, seconds, _say)


def _say(line: str) -> None:
    click.echo(line, err=True)
