"""The names that a peer's certificate proves; who they are is a setting."""

from collections.abc import Iterable, Mapping
from typing import Any

GATEWAY, SCHEDULER = "moorage-gateway", "moorage-scheduler"
"""The names of the gateway and of kube-scheduler, unless a setting has others."""

OPERATOR, METRICS = "moorage-operator", "moorage-metrics"
"""The names of people, and of Prometheus, unless a setting has others."""


def service_identity(service: str) -> str:
    """Return the name that the server of a service must prove: such as "filter"."""
    return f"moorage-{service}"


def http_identities(peer_certificate: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the DNS names of a verified certificate; none without a certificate.

    Args:
        peer_certificate: `transport.get_extra_info("peercert")`.
    """
    found = (peer_certificate or {}).get("subjectAltName", ())
    return frozenset(name for kind, name in found if kind == "DNS")


def grpc_identities(context: Mapping[str, Iterable[bytes]]) -> frozenset[str]:
    """Return the DNS names of the caller's certificate; none in plain text.

    Args:
        context: `auth_context()` of the call.
    """
    return frozenset(name.decode(errors="replace") for name in context.get("peer_dns", ()))
