"""The fields of a policy document, MoorageConfiguration; `document` reads them."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from moorage.units.durations import parse_duration
from moorage_host.policy.effective import FailurePolicy

API_VERSION = "moorage.io/v1alpha1"
KIND = "MoorageConfiguration"
DEFAULT_PROFILE = "moorage"
DEFAULT_SCORE_SCALE: Final = 100
DEFAULT_MAX_SHARE: Final = "10%"

_MAX_WEIGHT = 2**31 - 1
_Name = Annotated[str, msgspec.Meta(min_length=1, title="a name")]
_Weight = Annotated[
    int, msgspec.Meta(ge=0, le=_MAX_WEIGHT, title="an integer from 0 to 2147483647")
]
_Duration = Annotated[str, msgspec.Meta(min_length=1, title='a duration such as "500ms"')]
_Percentage = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(100|[0-9]{1,2}(\.[0-9]{1,2})?)%$",
        title='a percentage such as "10%", up to "100%"',
    ),
]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the document."""


class EnabledPlugin(_Part, frozen=True, kw_only=True):
    """A plugin to run; a weight of 0 means the default of the plugin."""

    name: _Name
    weight: _Weight = 0


class DisabledPlugin(_Part, frozen=True, kw_only=True):
    """A plugin not to run; `*` stands for all."""

    name: _Name


class PluginSet(_Part, frozen=True, kw_only=True):
    """What runs at one point beside or instead of what multiPoint enables."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: tuple[DisabledPlugin, ...] = ()


_FILTER = "the point `filter` stands for PreFilter and Filter"
_SCORE = "the point `score` stands for PreScore, Score and NormalizeScore"
_BIND = "the point `bind` stands for Permit, PreBind and PostBind"
_UPSTREAM = "this point belongs to kube-scheduler's own configuration"


class CyclePlugins(_Part, frozen=True, kw_only=True):
    """Plugins by point; multiPoint means every point that a plugin implements."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = {
        "preFilter": _FILTER,
        "preScore": _SCORE,
        "normalizeScore": _SCORE,
        "permit": _BIND,
        "preBind": _BIND,
        "postBind": _BIND,
        "bind": "a shadow never binds",
        "reserve": "a filter plugin that has `wants_claim` runs it at the point `filter`",
    } | dict.fromkeys(("preEnqueue", "queueSort", "postFilter"), _UPSTREAM)

    multi_point: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()

    @property
    def by_point(self) -> Mapping[str, PluginSet]:
        """The sets by the names that the points have in the document."""
        fields = msgspec.structs.fields(self)
        return {field.encode_name: getattr(self, field.name) for field in fields}


class Plugins(CyclePlugins, frozen=True, kw_only=True):
    """The plugins of a profile, also those of binds."""

    bind: PluginSet = PluginSet()


class PluginConfig(_Part, frozen=True, kw_only=True):
    """A plugin's arguments and limits, at all its points in the profile."""

    name: _Name
    args: dict[str, Any] = {}
    failure_policy: FailurePolicy | None = None
    time_budget: _Duration = ""

    @property
    def time_budget_seconds(self) -> float | None:
        """The time that the plugin may take at each step; None leaves it to the plugin."""
        return parse_duration(self.time_budget) if self.time_budget else None


class Shadow(_Part, frozen=True, kw_only=True):
    """What another profile beside this one would do otherwise; it decides nothing."""

    plugins: CyclePlugins = CyclePlugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    max_share: _Percentage = DEFAULT_MAX_SHARE

    @property
    def share(self) -> float:
        """The part of the time that may be spent on it, 0..1."""
        return float(self.max_share.rstrip("%")) / 100


class Profile(_Part, frozen=True, kw_only=True):
    """The plugins for the pods of one schedulerName."""

    scheduler_name: _Name = DEFAULT_PROFILE
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    shadow: Shadow | None = None


_ELSEWHERE = "this field belongs to kube-scheduler's own configuration"


class MoorageConfiguration(_Part, frozen=True, kw_only=True):
    """The whole document."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("extenders", "leaderElection", "parallelism", "clientConnection"), _ELSEWHERE
    )

    api_version: Literal["moorage.io/v1alpha1"]
    kind: Literal["MoorageConfiguration"]
    score_scale: Literal[10, 100, 1000] = DEFAULT_SCORE_SCALE
    profiles: tuple[Profile, ...] = ()
