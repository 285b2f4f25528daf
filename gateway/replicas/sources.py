"""What a pool of replicas asks of the rest of the gateway."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Protocol

from gateway.replicas.hedging import HedgeLimits
from moorage.models import ObjectKind
from moorage.v1 import types_pb2 as pb
from moorage_host.policy import Kind as PluginKind


class PolicySource(Protocol):
    """Knows the policy; learns what replicas can run."""

    def learn(self, kind: str, plugins: Sequence[pb.Plugin], replica: Hashable) -> None:
        """Take over what a replica can run."""

    def forget(self, kind: str, replica: Hashable) -> None:
        """Note that a replica is gone, with what it could run."""

    async def for_kind(self, kind: PluginKind) -> pb.Policy:
        """Return the policy for one kind, once it is known."""

    def reads(self, *kinds: PluginKind) -> Mapping[ObjectKind, Sequence[str]]:
        """Return which further kinds of objects it reads, with the plugins that do."""


class ClusterSource(Protocol):
    """Follows nodes and pods."""

    async def until_synced(self) -> None:
        """Wait until nodes and pods have been read."""


class ObjectSource(Protocol):
    """Follows the further kinds of objects that plugins read."""

    def need(self, who: Hashable, readers: Mapping[ObjectKind, Sequence[str]]) -> None:
        """Take over what someone needs from here on: kinds, with the plugins that read them."""

    async def synced(self, kinds: Collection[ObjectKind]) -> None:
        """Wait until objects of these kinds have been read."""


class PoolLimits(HedgeLimits, Protocol):
    """The settings that a pool reads."""

    @property
    def session_timeout(self) -> float: ...  # noqa: D102
    @property
    def resolve_interval(self) -> float: ...  # noqa: D102
    @property
    def delta_interval(self) -> float: ...  # noqa: D102
