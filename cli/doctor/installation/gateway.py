"""Reads what the gateway reports of itself, its callers, its replicas and the policy."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from cli.doctor.installation.objects import Missing
from cli.doctor.installation.processes import Process, read_process
from cli.shared.gateway.client import Gateway
from cli.shared.gateway.errors import GatewayError
from moorage.models import ObjectKind
from moorage_host.policy import PluginInfo

AnswerT = TypeVar("AnswerT")


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an answer; a gateway of another version may lack fields or have more."""


class Own(Struct, frozen=True):
    """What the gateway is."""

    time: float
    http_timeout: float
    extender_prefix: str = ""
    scheduler_identities: tuple[str, ...] = ()
    leader_election: str = "none"
    lease_name: str = "moorage-gateway"


class Caller(Struct, frozen=True):
    """Who called the extender; *verb* is empty if the call was refused."""

    caller: str
    verb: str
    refused: bool
    calls: int
    seconds_ago: float


class ReplicaPlugin(Struct, frozen=True):
    """A plugin of a replica."""

    name: str
    version: str = ""
    origin: str = ""


class Replica(Struct, frozen=True):
    """A replica of filter or scorer."""

    place: str
    moorage_version: str = ""
    behind: int = 0
    unanswered: int = 0
    problems: Mapping[str, Any] = {}
    plugins: tuple[ReplicaPlugin, ...] = ()


class Pool(Struct, frozen=True):
    """The replicas of a service."""

    service: str
    problem: str = ""
    replicas: tuple[Replica, ...] = ()


class Binder(Struct, frozen=True):
    """The binder as the gateway sees it."""

    place: str = ""
    moorage_versions: Mapping[str, str] = {}
    note: str = ""
    problems: tuple[str, ...] = ()


class Replicas(Struct, frozen=True):
    """What `GET /replicas` answers."""

    gateway: Own
    moorage_version: str
    callers: tuple[Caller, ...] = ()
    services: tuple[Pool, ...] = ()
    binder: Binder = Binder()
    silent_seconds: Mapping[str, float | None] = {}


class Plugin(Struct, frozen=True):
    """An enabled plugin."""

    name: str
    kind: str
    only_shadow: bool = False
    points: tuple[str, ...] = ()
    reads_placements: bool = True
    reads: tuple[ObjectKind, ...] = ()

    def info(self, managed_resources: tuple[str, ...]) -> PluginInfo:
        """Return the same as `moorage config extender` takes it."""
        return PluginInfo(
            name=self.name,
            points=frozenset(self.points),
            reads_placements=self.reads_placements,
            reads=self.reads,
            managed_resources=managed_resources,
        )


class Policy(Struct, frozen=True):
    """What `GET /policy` answers."""

    source: str
    revision: str
    score_scale: int
    profiles: tuple[str, ...]
    note: str = ""
    file_hash: str = ""
    plugins: tuple[Plugin, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayReport:
    """What the gateway that decides reports.

    Attributes:
        place: Where it is, for people.
        pod: NAMESPACE/POD; "" if it was reached by its address.
        is_secured: Whether its ports have certificates.
        replicas: Its answer about who takes part.
        policy: Its answer about the policy.
        process: Its probes and metrics.
        skew: Its clock minus the clock of this machine, in seconds.
    """

    place: str
    pod: str
    is_secured: bool
    replicas: Replicas | Missing
    policy: Policy | Missing
    process: Process | Missing
    skew: float | Missing


async def read_gateway(gateway: Gateway, *, pod: str, is_secured: bool) -> GatewayReport:
    """Ask the gateway; what it does not answer is missing, with the reason."""
    before = time.time()
    replicas = await _asked(gateway, "/replicas", Replicas)
    middle = (before + time.time()) / 2
    return GatewayReport(
        place=gateway.place,
        pod=pod,
        is_secured=is_secured,
        replicas=replicas,
        policy=await _asked(gateway, "/policy", Policy),
        process=await read_process(gateway, "gateway"),
        skew=replicas if isinstance(replicas, Missing) else replicas.gateway.time - middle,
    )


async def _asked(gateway: Gateway, path: str, kind: type[AnswerT]) -> AnswerT | Missing:
    try:
        return msgspec.convert(await gateway.get(path), kind, strict=False)
    except GatewayError as error:
        return Missing(str(error))
    except msgspec.ValidationError as error:
        return Missing(f"the gateway's {path} is of another version of Moorage: {error}")
