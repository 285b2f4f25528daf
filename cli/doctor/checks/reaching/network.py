"""Whether NetworkPolicies let kube-scheduler reach the gateway."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from cli.doctor.installation.objects import Object
from moorage.models import LabelSelector
from moorage.rules.nodes import matches_labels

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection between two pods.

    Attributes:
        source: The pod that connects; its address counts if it is on its node's network.
        source_labels: Those of its namespace.
        target: The pod that is to be reached.
        target_labels: Those of its namespace.
        port: The number of the port.
    """

    source: Object
    source_labels: Labels
    target: Object
    target_labels: Labels
    port: int


def forbidding(policies: Sequence[Object], connection: Connection) -> list[str]:
    """Return the policies that keep a connection from coming about, none if it may.

    Of all policies that select the target, one must let the source in; of all that select the
    source, one must let it out. Those of other namespaces than *policies* are of do not count.
    """
    into = _Side(
        direction="Ingress",
        peers="from",
        own=connection.target,
        other=connection.source,
        labels=connection.source_labels,
    )
    out = _Side(
        direction="Egress",
        peers="to",
        own=connection.source,
        other=connection.target,
        labels=connection.target_labels,
    )
    return [name for side in (into, out) for name in side.forbidding(policies, connection)]


def selector(content: Mapping[str, Any] | None) -> LabelSelector:
    """Return a label selector of a manifest; without one, that matches everything."""
    return msgspec.convert(content or {}, LabelSelector)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One end of a connection: *own* is the pod that policies select, *other* its peer."""

    direction: Literal["Ingress", "Egress"]
    peers: Literal["from", "to"]
    own: Object
    other: Object
    labels: Labels

    def forbidding(self, policies: Sequence[Object], connection: Connection) -> list[str]:
        selecting = [each for each in policies if self._selects(each)]
        for policy in selecting:
            for rule in policy["spec"].get(self.direction.lower()) or ():
                if _has_port(rule, connection) and self._has_peer(rule, policy):
                    return []
        return [each["metadata"]["name"] for each in selecting]

    def _selects(self, policy: Object) -> bool:
        spec = policy["spec"]
        types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]
        if self.direction not in types or self.own["spec"].get("hostNetwork"):
            return False
        is_there = self.own["metadata"]["namespace"] == policy["metadata"]["namespace"]
        return is_there and matches_labels(selector(spec.get("podSelector")), _labels(self.own))

    def _has_peer(self, rule: Object, policy: Object) -> bool:
        peers = rule.get(self.peers)
        return not peers or any(self._is_peer(each, policy) for each in peers)

    def _is_peer(self, peer: Object, policy: Object) -> bool:
        if (block := peer.get("ipBlock")) is not None:
            return any(_within(address, block) for address in _addresses(self.other))
        if self.other["spec"].get("hostNetwork"):
            return False  # labels of pods on the node's network do not count
        if (spaces := peer.get("namespaceSelector")) is not None:
            if not matches_labels(selector(spaces), self.labels):
                return False
        elif self.other["metadata"]["namespace"] != policy["metadata"]["namespace"]:
            return False
        return matches_labels(selector(peer.get("podSelector")), _labels(self.other))


def _has_port(rule: Object, connection: Connection) -> bool:
    ports = rule.get("ports")
    if not ports:
        return True
    named = {
        each["name"]: each["containerPort"]
        for container in connection.target["spec"]["containers"]
        for each in container.get("ports") or ()
        if "name" in each
    }
    for each in ports:
        first = each.get("port")
        first = named.get(first, -1) if isinstance(first, str) else first
        if first is None or first <= connection.port <= each.get("endPort", first):
            return True
    return False


def _within(address: str, block: Object) -> bool:
    found = ipaddress.ip_address(address)
    outside = any(found in ipaddress.ip_network(each) for each in block.get("except") or ())
    return found in ipaddress.ip_network(block["cidr"]) and not outside


def _addresses(pod: Object) -> Iterator[str]:
    status = pod.get("status") or {}
    for key in ("podIP", "hostIP") if pod["spec"].get("hostNetwork") else ("podIP",):
        if address := status.get(key):
            yield address


def _labels(pod: Object) -> Labels:
    return pod["metadata"].get("labels") or {}
