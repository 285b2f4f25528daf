"""Whether NetworkPolicies let kube-scheduler reach the gateway."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cli.doctor.installation.objects import Object
from moorage.models import LabelSelector
from moorage.rules.nodes import matches_labels

Labels = Mapping[str, str]


def forbidding(
    policies: Sequence[Object], target: Object, source: Object, labels: Labels, port: int
) -> list[str]:
    """Return the policies that select a pod if none of them lets another one in.

    Args:
        policies: Those of the target's namespace.
        target: The pod that is to be reached.
        source: The pod that connects; its address counts if it is on its node's network.
        labels: Those of the namespace of *source*.
        port: The number of the port.
    """
    selecting = [each for each in policies if _selects(each, target)]
    for policy in selecting:
        for rule in policy["spec"].get("ingress") or ():
            if _has_port(rule, target, port) and _has_peer(rule, policy, source, labels):
                return []
    return [each["metadata"]["name"] for each in selecting]


def selector(content: Mapping[str, Any] | None) -> LabelSelector:
    """Return a label selector of a manifest; without one, that matches everything."""
    return msgspec.convert(content or {}, LabelSelector)


def _selects(policy: Object, pod: Object) -> bool:
    types = policy["spec"].get("policyTypes") or ["Ingress"]
    return "Ingress" in types and matches_labels(
        selector(policy["spec"].get("podSelector")), _labels(pod)
    )


def _has_port(rule: Object, target: Object, port: int) -> bool:
    ports = rule.get("ports")
    if not ports:
        return True
    named = {
        each["name"]: each["containerPort"]
        for container in target["spec"]["containers"]
        for each in container.get("ports") or ()
        if "name" in each
    }
    for each in ports:
        first = each.get("port")
        first = named.get(first, -1) if isinstance(first, str) else first
        if first is None or first <= port <= each.get("endPort", first):
            return True
    return False


def _has_peer(rule: Object, policy: Object, source: Object, labels: Labels) -> bool:
    peers = rule.get("from")
    return not peers or any(_is_peer(each, policy, source, labels) for each in peers)


def _is_peer(peer: Object, policy: Object, source: Object, labels: Labels) -> bool:
    if (block := peer.get("ipBlock")) is not None:
        return any(_within(address, block) for address in _addresses(source))
    if source["spec"].get("hostNetwork"):
        return False  # labels of pods on the node's network do not count
    if (spaces := peer.get("namespaceSelector")) is not None:
        if not matches_labels(selector(spaces), labels):
            return False
    elif source["metadata"]["namespace"] != policy["metadata"]["namespace"]:
        return False
    return matches_labels(selector(peer.get("podSelector")), _labels(source))


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
