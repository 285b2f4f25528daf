"""The names that a certificate proves, and which of them may call which gRPC method.

A method that is not in the table is refused. Without certificates (plain text on loopback, or
`--insecure`) everything is allowed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

GATEWAY, SCHEDULER = "moorage-gateway", "moorage-scheduler"
"""The names of the gateway and of kube-scheduler, unless a setting has others."""

OPERATOR, METRICS = "moorage-operator", "moorage-metrics"
"""The names of people, and of Prometheus, unless a setting has others."""


def service_identity(service: str) -> str:
    """Return the name that the server of a service must prove: such as "filter"."""
    return f"moorage-{service}"


def http_identities(peer_certificate: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the DNS names of a verified certificate, as `ssl` gives it; none without one."""
    found = (peer_certificate or {}).get("subjectAltName", ())
    return frozenset(name for kind, name in found if kind == "DNS")


def grpc_identities(context: Mapping[str, Iterable[bytes]]) -> frozenset[str]:
    """Return the DNS names that the `auth_context()` of a call has; none in plain text."""
    return frozenset(name.decode(errors="replace") for name in context.get("peer_dns", ()))


Role = Literal["gateway", "operator", "anyone"]
"""The gateway, people, or whoever has a certificate of a believed authority."""

_GATEWAY: tuple[Role, ...] = ("gateway",)
_PEOPLE: tuple[Role, ...] = ("gateway", "operator")
_ANYONE: tuple[Role, ...] = ("anyone",)

METHODS: Mapping[str, tuple[Role, ...]] = {
    "moorage.v1.ReplicaService/Session": _GATEWAY,
    "moorage.v1.ReplicaService/FollowRetries": _GATEWAY,
    "moorage.v1.ReplicaService/FollowProblems": _GATEWAY,
    "moorage.v1.ReplicaService/ListPlugins": _PEOPLE,
    "moorage.v1.ReplicaService/GetState": _PEOPLE,
    "moorage.v1.FilterService/Filter": _PEOPLE,
    "moorage.v1.ScorerService/Score": _PEOPLE,
    "moorage.v1.BinderService/Bind": _GATEWAY,
    "moorage.v1.BinderService/Session": _GATEWAY,
    "moorage.v1.BinderService/Barrier": _GATEWAY,
    "moorage.v1.BinderService/FollowState": _GATEWAY,
    "moorage.v1.BinderService/RetryPods": _GATEWAY,
    "moorage.v1.BinderService/ListPlugins": _PEOPLE,
    "grpc.health.v1.Health/Check": _ANYONE,
    "grpc.health.v1.Health/Watch": _ANYONE,
    "grpc.health.v1.Health/List": (),  # not implemented
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _PEOPLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """Who is who.

    Attributes:
        gateway: The DNS names of gateways.
        operator: Those of people.
    """

    gateway: Collection[str]
    operator: Collection[str]

    def refusal(self, method: str, identities: frozenset[str]) -> str:
        """Return why a caller may not call a method, or nothing if it may.

        Args:
            method: Its full name, such as "moorage.v1.BinderService/Bind".
            identities: The DNS names that the caller has proven.
        """
        roles = METHODS.get(method, ())
        if "anyone" in roles:
            return ""
        allowed = [name for role in roles for name in self._names(role)]
        if not identities.isdisjoint(allowed):
            return ""
        caller = ", ".join(sorted(identities)) or "a caller whose certificate has no DNS name"
        return f"{caller} may not call {method}; allowed: {', '.join(allowed) or 'nobody'}"

    def _names(self, role: Role) -> Collection[str]:
        return self.gateway if role == "gateway" else self.operator
