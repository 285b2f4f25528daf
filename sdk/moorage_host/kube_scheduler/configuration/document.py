"""The KubeSchedulerConfiguration that the real kube-scheduler is deployed with, as types.

Every field may be missing, and then has kube-scheduler's default. What is beyond types is checked
in `validation`; `reading` does both.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

import msgspec
from msgspec import Meta

from moorage.units.durations import parse_duration
from moorage_host.kube_scheduler.configuration.arguments import ARGUMENTS
from moorage_host.kube_scheduler.configuration.parts import (
    ConfigurationPart,
    Duration,
    Int32,
    Int64,
)
from moorage_host.kube_scheduler.configuration.plugins import DEFAULTS, IN_TREE
from moorage_host.policy.checks import nulls_as_absent
from moorage_host.policy.merge import Entry, EntrySet, expand, merge

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

DEFAULT_NAME = "default-scheduler"
"""The schedulerName of pods that name none."""

DEFAULT_TIMEOUT = 5.0  # seconds; what kube-scheduler takes when httpTimeout is 0 or absent

MAX_EXTENDER_SCORE = 10
MAX_NODE_SCORE = 100

_Percentage = Annotated[int, Meta(ge=0, le=100, title="an integer from 0 to 100")]
_Positive = Annotated[int, Meta(ge=1, le=2**63 - 1, title="a positive integer")]


class SchedulerPlugin(ConfigurationPart, frozen=True):
    """A plugin that is enabled or disabled; weight 0 stands for 1."""

    name: str = ""
    weight: Int32 = 0


class SchedulerPluginSet(ConfigurationPart, frozen=True):
    """What is enabled and disabled at an extension point."""

    enabled: tuple[SchedulerPlugin, ...] = ()
    disabled: tuple[SchedulerPlugin, ...] = ()

    @property
    def entries(self) -> EntrySet:
        """The set as the rules for merging take it."""
        enabled = tuple(Entry(plugin.name, plugin.weight) for plugin in self.enabled)
        return EntrySet(enabled, frozenset(plugin.name for plugin in self.disabled))


class ProfilePlugins(ConfigurationPart, frozen=True):
    """The extension points of a profile."""

    pre_enqueue: SchedulerPluginSet = SchedulerPluginSet()
    queue_sort: SchedulerPluginSet = SchedulerPluginSet()
    pre_filter: SchedulerPluginSet = SchedulerPluginSet()
    filter: SchedulerPluginSet = SchedulerPluginSet()
    post_filter: SchedulerPluginSet = SchedulerPluginSet()
    pre_score: SchedulerPluginSet = SchedulerPluginSet()
    score: SchedulerPluginSet = SchedulerPluginSet()
    reserve: SchedulerPluginSet = SchedulerPluginSet()
    permit: SchedulerPluginSet = SchedulerPluginSet()
    pre_bind: SchedulerPluginSet = SchedulerPluginSet()
    bind: SchedulerPluginSet = SchedulerPluginSet()
    post_bind: SchedulerPluginSet = SchedulerPluginSet()
    placement_generate: SchedulerPluginSet = SchedulerPluginSet()
    placement_score: SchedulerPluginSet = SchedulerPluginSet()
    pod_group_post_filter: SchedulerPluginSet = SchedulerPluginSet()
    multi_point: SchedulerPluginSet = SchedulerPluginSet()

    @property
    def by_point(self) -> Mapping[str, SchedulerPluginSet]:
        """The extension points by their names in the file; multiPoint is none."""
        fields = msgspec.structs.fields(self)
        sets = {field.encode_name: getattr(self, field.name) for field in fields}
        return {name: each for name, each in sets.items() if name != "multiPoint"}

    @property
    def everywhere(self) -> tuple[Entry, ...]:
        """The plugins of multiPoint, put on top of the default ones."""
        return merge(DEFAULTS, self.multi_point.entries).enabled

    def at(self, point: str) -> dict[str, int]:
        """Return the plugins that run at an extension point in order, with their weights."""

        def implements(name: str) -> bool:
            return name in IN_TREE and point in IN_TREE[name].points

        merged = expand(self.by_point[point].entries, self.everywhere, implements)
        return {entry.name: entry.weight or 1 for entry in merged}


class PluginConfigEntry(ConfigurationPart, frozen=True):
    """Arguments of a plugin; of any type if it is none of kube-scheduler's."""

    name: str = ""
    args: Any = None


class ManagedResource(ConfigurationPart, frozen=True):
    """A resource that makes an extender interested in a pod."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLS(ConfigurationPart, frozen=True):
    """How to reach an https extender; the data are PEM in base64, and beat the files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


Verb = Literal["filter", "prioritize", "preempt", "bind"]

VERBS: tuple[Verb, ...] = get_args(Verb)
"""What an extender may be asked, in the order in which the configuration is written."""


class ExtenderConfig(ConfigurationPart, frozen=True):
    """One extender. Empty verbs are not offered."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: Int64 = 0
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    http_timeout: Duration = msgspec.field(default="0s", name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False
    tls_config: ExtenderTLS | None = None

    def verb(self, name: Verb) -> str:
        """Return the path of a verb, "" if it is not offered."""
        path: str = getattr(self, f"{name}_verb")
        return path

    @property
    def timeout(self) -> float | None:
        """Seconds for a whole call; None means no limit, which Go makes of a negative duration."""
        seconds = parse_duration(self.http_timeout)
        if seconds < 0:
            return None
        return seconds or DEFAULT_TIMEOUT

    @property
    def points(self) -> int:
        """What kube-scheduler multiplies a score by, in Go's 64 bits, which wrap around."""
        product = self.weight * (MAX_NODE_SCORE // MAX_EXTENDER_SCORE)
        return (product + 2**63) % 2**64 - 2**63


class KubeSchedulerProfile(ConfigurationPart, frozen=True):
    """Which pods are scheduled, and by which in-tree plugins."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = {
        "extenders": "it belongs to the whole file: all profiles ask the same extenders"
    }

    scheduler_name: str = DEFAULT_NAME
    percentage_of_nodes_to_score: _Percentage | None = None
    plugins: ProfilePlugins = ProfilePlugins()
    plugin_config: tuple[PluginConfigEntry, ...] = ()

    @property
    def filters(self) -> tuple[str, ...]:
        """The plugins at the extension point Filter, in order."""
        return tuple(self.plugins.at("filter"))

    @property
    def scores(self) -> Mapping[str, int]:
        """The plugins at the extension point Score, in order, with their weights."""
        return self.plugins.at("score")

    @property
    def post_filters(self) -> tuple[str, ...]:
        """The plugins at the extension point PostFilter, in order."""
        return tuple(self.plugins.at("postFilter"))

    def arguments(self, plugin: str) -> Mapping[str, Any]:
        """Return the arguments of a plugin that are not the default ones, without their head."""
        given = next((entry.args for entry in self.plugin_config if entry.name == plugin), None)
        if not isinstance(given, dict) or plugin not in ARGUMENTS:
            return {}
        kind = ARGUMENTS[plugin]
        read = msgspec.convert(nulls_as_absent(given, kind), kind)
        found: dict[str, Any] = msgspec.to_builtins(read)
        return {key: value for key, value in found.items() if key not in ("apiVersion", "kind")}


class LeaderElection(ConfigurationPart, frozen=True):
    """How one of several kube-schedulers is elected; a duration of 0 stands for the default."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = {
        "lockObjectName": "it is resourceName now",
        "lockObjectNamespace": "it is resourceNamespace now",
    }

    leader_elect: bool = True
    lease_duration: Duration = "0s"
    renew_deadline: Duration = "0s"
    retry_period: Duration = "0s"
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnection(ConfigurationPart, frozen=True):
    """How kube-scheduler reaches the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0
    burst: Annotated[int, Meta(ge=0, le=2**31 - 1, title="an integer that is not negative")] = 0


_OF_PROFILES = "it belongs to profiles[]"

_REMOVED = "kube-scheduler takes it as an option only"


class KubeSchedulerConfiguration(ConfigurationPart, frozen=True):
    """A KubeSchedulerConfiguration; backoffs are in seconds."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("plugins", "pluginConfig", "schedulerName"), _OF_PROFILES),
        **dict.fromkeys(("healthzBindAddress", "metricsBindAddress"), _REMOVED),
        "algorithmSource": "name plugins in profiles[].plugins; see moorage convert-policy",
        "hardPodAffinitySymmetricWeight": (
            "it is hardPodAffinityWeight in the arguments of InterPodAffinity now"
        ),
        "bindTimeoutSeconds": "it is an argument of VolumeBinding now",
        "disablePreemption": "disable DefaultPreemption in profiles[].plugins.postFilter",
    }

    api_version: Literal["kubescheduler.config.k8s.io/v1"]
    kind: Literal["KubeSchedulerConfiguration"]
    parallelism: Annotated[int, Meta(ge=1, le=2**31 - 1, title="a positive integer")] = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    percentage_of_nodes_to_score: _Percentage = 0
    pod_initial_backoff_seconds: _Positive = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()

    def __post_init__(self) -> None:
        """Take the default profile where none is given, as kube-scheduler does."""
        if not self.profiles:
            msgspec.structs.force_setattr(self, "profiles", (KubeSchedulerProfile(),))

    @property
    def scheduler_names(self) -> list[str]:
        """The schedulerNames of the pods that are scheduled."""
        return [profile.scheduler_name for profile in self.profiles]

    @property
    def ignored_resources(self) -> frozenset[str]:
        """Resources that only an extender counts."""
        managed = (r for extender in self.extenders for r in extender.managed_resources)
        return frozenset(r.name for r in managed if r.ignored_by_scheduler)


DEFAULT_CONFIGURATION = KubeSchedulerConfiguration(api_version=API_VERSION, kind=KIND)
"""What kube-scheduler does without a configuration file."""
