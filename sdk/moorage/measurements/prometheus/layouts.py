"""How common installations of Prometheus name the node of a series, and how to name it likewise.

The names of presets are those of the label that carries the node, or of what it is joined from.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from moorage.models import NodeManifest

Preset = Literal[
    "node", "kubernetes-node", "node-uname-info", "kube-pod-info", "instance-name", "instance-ip"
]
"""The name of a layout."""

_PORT = re.compile(r":[0-9]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which label of a series names its node, and in which form.

    Attributes:
        label: The label.
        format: What it holds, with {name}, {hostname} or {internalIP} of the node. A port at the
            end of the label counts only if the format has one.
        join: PromQL that gives series the label if they do not have it themselves.
    """

    label: str
    format: str = "{name}"
    join: str = ""

    def check(self) -> None:
        """Refuse a format that does not distinguish nodes.

        Raises:
            ValueError: It names no property of the node, or one that does not exist.
        """
        try:
            constant = self._filled("a", "a", "a") == self._filled("b", "b", "b")
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise ValueError(f'nodeFormat "{self.format}" {_FORMAT_HELP}') from error
        if constant:
            raise ValueError(f'nodeFormat "{self.format}" {_FORMAT_HELP}')

    def key_of_node(self, node: NodeManifest) -> str | None:
        """Return what series of *node* have in the label; None if that cannot be known."""
        addresses = {a.type: a.address for a in reversed(node.status.addresses)}
        ip = addresses.get("InternalIP", "")
        if not ip and "{internalIP}" in self.format:
            return None
        hostname = addresses.get("Hostname") or node.name
        return self._filled(node.name, hostname, ip)

    def key_of(self, labels: Mapping[str, str]) -> str:
        """Return the node that *labels* name, in the form of `key_of_node`; empty if none."""
        value = labels.get(self.label, "")
        if not _PORT.search(self.format):
            value = _without_port(value)
        if self.label == "instance" and _is_address(value) != ("{internalIP}" in self.format):
            return ""
        return value

    def _filled(self, name: str, hostname: str, ip: str) -> str:
        return self.format.format(name=name, hostname=hostname, internalIP=ip)


_FORMAT_HELP = "must contain {name}, {hostname} or {internalIP}, and no other braces"

PRESETS: Mapping[Preset, Layout] = {
    "node": Layout(label="node"),
    "kubernetes-node": Layout(label="kubernetes_node"),
    "node-uname-info": Layout(
        label="nodename",
        format="{hostname}",
        join="* on (instance) group_left (nodename) max by (instance, nodename) (node_uname_info)",
    ),
    "kube-pod-info": Layout(
        label="node",
        join="* on (namespace, pod) group_left (node) "
        'max by (namespace, pod, node) (kube_pod_info{node!=""})',
    ),
    "instance-name": Layout(label="instance"),
    "instance-ip": Layout(label="instance", format="{internalIP}"),
}
"""The layouts by name."""


def _without_port(value: str) -> str:
    if value.count(":") > 1 and not value.startswith("["):  # IPv6 without a port
        return value
    return _PORT.sub("", value).strip("[]")


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
