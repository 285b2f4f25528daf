"""Finds the admin port of `moorage up` in the kubeconfig that it wrote.

There the gateway is a process of this machine and no pod, so the API server cannot lead to it.
"""

import os
from pathlib import Path
from typing import Any

import yaml

NAME = "moorage.io/gateway"
"""The name of the extension of the cluster, which kubectl keeps and does not read."""


def extension(admin: str) -> dict[str, Any]:
    """Return what a kubeconfig's cluster has about the gateway whose admin port is *admin*."""
    return {"name": NAME, "extension": {"admin": admin}}


def embedded_admin(kubeconfig: Path | None) -> str:
    """Return the admin port that the current context of a kubeconfig names; "" if none.

    Args:
        kubeconfig: The file; None for the first one of KUBECONFIG.
    """
    path = kubeconfig or Path(os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0])
    try:
        document = yaml.safe_load(path.read_text())
        current = _named(document["contexts"], document["current-context"])["context"]["cluster"]
        cluster = _named(document["clusters"], current)["cluster"]
        return str(_named(cluster["extensions"], NAME)["extension"]["admin"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, LookupError, TypeError):
        return ""  # what is wrong with it is reported by what connects to the API server


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for item in items:
        if item["name"] == name:
            return item
    raise KeyError(name)
