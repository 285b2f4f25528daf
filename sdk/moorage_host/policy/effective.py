"""The policy as one kind of service runs it: what the gateway sends down a session, as JSON.

The gateway encodes it (`ResolvedPolicy.for_kind`), a replica decodes it and builds its plugins
from it. Everything is resolved: order, weights, defaults, "*". Only the plugins' own arguments are
as written.
"""

import hashlib
import math
from typing import Any, Literal

import msgspec

from moorage.plugin.values import DEFAULT_TIME_BUDGET

FailurePolicy = Literal["Abort", "Ignore"]

SET_TO_DEFAULT = math.nextafter(DEFAULT_TIME_BUDGET, math.inf)
"""The time budget of a policy that sets the default itself: replicas of other versions take it."""


class _Effective(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """A part of the effective policy."""


class EffectivePlugin(_Effective, frozen=True, kw_only=True):
    """A plugin in its place, with everything that a replica needs to run it."""

    name: str
    weight: int = 1
    args: dict[str, Any] = {}
    failure_policy: FailurePolicy
    time_budget_seconds: float
    path: str = ""
    """Where the arguments stand: `policy.yaml:12: profiles[0].pluginConfig[2].args`."""

    @property
    def budget_is_by_size(self) -> bool:
        """Whether the time budget is the default, of which a step has less in small clusters."""
        return self.time_budget_seconds == DEFAULT_TIME_BUDGET


class EffectiveProfile(_Effective, frozen=True, kw_only=True):
    """The plugins for the pods of one schedulerName, in the order in which they run."""

    name: str
    plugins: tuple[EffectivePlugin, ...] = ()


class EffectivePolicy(_Effective, frozen=True, kw_only=True):
    """All profiles, for one kind of service."""

    profiles: tuple[EffectiveProfile, ...] = ()
    shadows: tuple[EffectiveProfile, ...] = ()
    """Those that run beside some of them and decide nothing; their names are `shadow_of` those."""

    @property
    def plugins(self) -> dict[str, None]:
        """The names of all plugins that run somewhere, in order."""
        every = (*self.profiles, *self.shadows)
        return dict.fromkeys(plugin.name for profile in every for plugin in profile.plugins)

    @property
    def revision(self) -> str:
        """A short hash of the content; where it stands in a file is not content."""
        return revision_of(self)

    def profile(self, name: str) -> EffectiveProfile | None:
        """Return the profile with this schedulerName."""
        return next((profile for profile in self.profiles if profile.name == name), None)


def shadow_of(profile: str) -> str:
    """Return what the shadow of a profile is called in services."""
    return f"{profile}/shadow"


def encode_effective(policy: EffectivePolicy) -> bytes:
    """Return the policy as canonical JSON: the same content gives the same bytes."""
    return msgspec.json.encode(policy, order="deterministic")


def decode_effective(data: bytes) -> EffectivePolicy:
    """Return the policy from JSON; raises msgspec.ValidationError when it is not one."""
    return msgspec.json.decode(data, type=EffectivePolicy)


def revision_of(*policies: EffectivePolicy, salt: str = "") -> str:
    """Return a short hash of the content of several policies together, and of *salt*."""
    digest = hashlib.sha256(salt.encode())
    for policy in policies:
        digest.update(encode_effective(_without_paths(policy)) + b"\n")
    return digest.hexdigest()[:12]


def _without_paths(policy: EffectivePolicy) -> EffectivePolicy:
    return msgspec.structs.replace(
        policy,
        profiles=tuple(map(_without_path, policy.profiles)),
        shadows=tuple(map(_without_path, policy.shadows)),
    )


def _without_path(profile: EffectiveProfile) -> EffectiveProfile:
    plugins = tuple(msgspec.structs.replace(plugin, path="") for plugin in profile.plugins)
    return msgspec.structs.replace(profile, plugins=plugins)
