"""The effective policy of all kinds, and how it is shown to people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from moorage.units.durations import format_duration
from moorage_host.policy.catalogue import KINDS, Catalogue, Kind
from moorage_host.policy.effective import (
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    encode_effective,
    revision_of,
    shadow_of,
)
from moorage_host.policy.fields import API_VERSION, KIND
from moorage_host.policy.merge import ALL


@dataclass(frozen=True, kw_only=True)
class ResolvedPolicy:
    """A policy that is ready to run.

    Attributes:
        source: Where the document came from, usually a file.
        score_scale: The highest integer sent to kube-scheduler: 10, 100 or 1000.
        policies: What each kind of service runs.
        shadow_shares: The part of the time that may be spent on the shadow of a profile, 0..1; the
            other profiles have none.
        warnings: One line for each thing that is allowed but has no effect.
        catalogue: The plugins that it was resolved against.
    """

    source: str
    score_scale: int
    policies: Mapping[Kind, EffectivePolicy]
    shadow_shares: Mapping[str, float]
    warnings: tuple[str, ...]
    catalogue: Catalogue

    @cached_property
    def revision(self) -> str:
        """A short hash of all that takes effect."""
        salt = f"{self.score_scale} {sorted(self.shadow_shares.items())}"
        return revision_of(*(self.policies[kind] for kind in KINDS), salt=salt)

    @property
    def profile_names(self) -> tuple[str, ...]:
        """The schedulerNames that have a profile, in the order of the document."""
        return tuple(profile.name for profile in self.policies["filter"].profiles)

    def for_kind(self, kind: Kind) -> bytes:
        """Return what a replica of this kind gets, as JSON; see `decode_effective`."""
        return encode_effective(self.policies[kind])

    def describe(self) -> dict[str, Any]:
        """Return the policy in the document's own form, with every default filled in."""
        per_kind = zip(*(self.policies[kind].profiles for kind in KINDS), strict=True)
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "scoreScale": self.score_scale,
            "profiles": [
                self._describe_profile(dict(zip(KINDS, profiles, strict=True)))
                for profiles in per_kind
            ],
        }

    def to_yaml(self) -> str:
        """Return `describe` as YAML text, which is itself a valid document."""
        return yaml.dump(
            self.describe(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
        )

    def _describe_profile(self, profiles: Mapping[Kind, EffectiveProfile]) -> dict[str, Any]:
        name = profiles["filter"].name
        share = self.shadow_shares.get(name)
        return {
            "schedulerName": name,
            **self._describe_plugins(profiles),
            **({} if share is None else {"shadow": self._describe_shadow(name, share)}),
        }

    def _describe_shadow(self, profile: str, share: float) -> dict[str, Any]:
        shadows: dict[Kind, EffectiveProfile] = {
            kind: shadow
            for kind in KINDS
            for shadow in self.policies[kind].shadows
            if shadow.name == shadow_of(profile)
        }
        described = self._describe_plugins(shadows)
        for entries in described["plugins"].values():
            entries["disabled"] = [{"name": ALL}]  # nothing of the profile: it is all here
        return {**described, "maxShare": f"{share * 100:.4g}%"}

    def _describe_plugins(self, profiles: Mapping[Kind, EffectiveProfile]) -> dict[str, Any]:
        return {
            "plugins": {kind: _describe_set(kind, profile) for kind, profile in profiles.items()},
            "pluginConfig": list(self._describe_configs(profiles)),
        }

    def _describe_configs(self, profiles: Mapping[Kind, EffectiveProfile]) -> Iterator[Any]:
        uses: dict[str, dict[Kind, EffectivePlugin]] = {}
        for kind, profile in profiles.items():
            for plugin in profile.plugins:
                uses.setdefault(plugin.name, {})[kind] = plugin
        for name, by_kind in uses.items():
            yield {"name": name} | self._describe_config(name, by_kind)

    def _describe_config(self, name: str, uses: Mapping[Kind, EffectivePlugin]) -> dict[str, Any]:
        plugin = next(iter(uses.values()))
        defaults: dict[str, Any] = {}
        for kind in uses:
            info = self.catalogue.get(kind, name)
            defaults |= info.default_args if info else {}
        policies = {use.failure_policy for use in uses.values()}
        # A plugin of two kinds has two defaults, which one field cannot hold: it stays empty.
        failure_policy = {"failurePolicy": policies.pop()} if len(policies) == 1 else {}
        return {
            "args": defaults | plugin.args,
            **failure_policy,
            "timeBudget": format_duration(plugin.time_budget_seconds),
        }


def _describe_set(kind: Kind, profile: EffectiveProfile) -> dict[str, Any]:
    weighted = kind == "score"
    return {
        "enabled": [
            {"name": plugin.name} | ({"weight": plugin.weight} if weighted else {})
            for plugin in profile.plugins
        ]
    }


class _Dumper(yaml.SafeDumper):
    """Repeats values that occur twice instead of writing anchors, which are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
