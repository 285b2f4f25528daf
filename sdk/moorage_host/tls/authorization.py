"""Which caller may call which method: the one table of it, by the names in certificates.

A method that is not in the table is refused. Without certificates (plain text on loopback, or
`--insecure`) everything is allowed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Role = Literal["gateway", "operator", "anyone"]
"""The gateway, people, or whoever has a certificate of a believed authority."""

GATEWAY: tuple[Role, ...] = ("gateway",)
PEOPLE: tuple[Role, ...] = ("gateway", "operator")
ANYONE: tuple[Role, ...] = ("anyone",)

METHODS: Mapping[str, tuple[Role, ...]] = {
    "moorage.v1.FilterService/Session": GATEWAY,
    "moorage.v1.FilterService/FollowRetries": GATEWAY,
    "moorage.v1.FilterService/FollowProblems": GATEWAY,
    "moorage.v1.FilterService/Filter": PEOPLE,
    "moorage.v1.FilterService/ListPlugins": PEOPLE,
    "moorage.v1.FilterService/GetState": PEOPLE,
    "moorage.v1.ScorerService/Session": GATEWAY,
    "moorage.v1.ScorerService/FollowProblems": GATEWAY,
    "moorage.v1.ScorerService/Score": PEOPLE,
    "moorage.v1.ScorerService/ListPlugins": PEOPLE,
    "moorage.v1.ScorerService/GetState": PEOPLE,
    "moorage.v1.BinderService/Bind": GATEWAY,
    "moorage.v1.BinderService/Session": GATEWAY,
    "moorage.v1.BinderService/Barrier": GATEWAY,
    "moorage.v1.BinderService/FollowState": GATEWAY,
    "moorage.v1.BinderService/RetryPods": GATEWAY,
    "moorage.v1.BinderService/ListPlugins": PEOPLE,
    "grpc.health.v1.Health/Check": ANYONE,
    "grpc.health.v1.Health/Watch": ANYONE,
    "grpc.health.v1.Health/List": (),  # not implemented
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": PEOPLE,
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
