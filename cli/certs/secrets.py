"""The folders of certificates as manifests of Kubernetes Secrets, for `kubectl apply -f -`."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from moorage_host.tls.certificate import AUTHORITIES, CHAIN, KEY


def secret_name(identity: str) -> str:
    """Return the name of the Secret of an identity, as the process mounts it."""
    return f"{identity}-tls"


def secrets(root: Path, identities: Iterable[str], namespace: str) -> str:
    """Return a Secret of type kubernetes.io/tls for each identity, in YAML."""
    return yaml.safe_dump_all(_secret(root, each, namespace) for each in identities)


def _secret(root: Path, identity: str, namespace: str) -> dict[str, Any]:
    data = {
        name: base64.b64encode((root / identity / name).read_bytes()).decode()
        for name in (CHAIN, KEY, AUTHORITIES)
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(identity),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "moorage"},
        },
        "type": "kubernetes.io/tls",
        "data": data,
    }
