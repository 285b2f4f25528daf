"""The KubeSchedulerConfiguration that the real kube-scheduler is deployed with.

It is read as strictly as by kube-scheduler: an unknown field or a duplicate key is refused with its
path. Fields that a stand-in has no use for are known and ignored.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from moorage.errors import ConfigurationError
from moorage.units.durations import parse_duration
from moorage_host.policy.document import PluginSet, read
from moorage_host.policy.merge import Entry, EntrySet, expand, merge
from moorage_host.policy.yaml_lines import read_tree

DEFAULTS = EntrySet(
    (
        Entry("SchedulingGates"),
        Entry("PrioritySort"),
        Entry("NodeName"),
        Entry("NodeUnschedulable"),
        Entry("TaintToleration", 3),
        Entry("NodeAffinity", 2),
        Entry("NodePorts"),
        Entry("NodeResourcesFit", 1),
        Entry("VolumeRestrictions"),
        Entry("NodeVolumeLimits"),
        Entry("VolumeBinding"),
        Entry("VolumeZone"),
        Entry("PodTopologySpread", 2),
        Entry("InterPodAffinity", 2),
        Entry("DynamicResources", 2),
        Entry("DefaultPreemption"),
        Entry("NodeResourcesBalancedAllocation", 1),
        Entry("ImageLocality", 1),
        Entry("DefaultBinder"),
    )
)
"""kube-scheduler's default plugins in its order, with the weights of their scores."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the configuration: an unknown field is an error."""


class ProfilePlugins(_Part, frozen=True):
    """The extension points of a profile."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()

    def at(self, point: PluginSet) -> dict[str, int]:
        """Return the plugins of one extension point in order, with their weights."""
        everywhere = merge(DEFAULTS, _entries(self.multi_point)).enabled
        merged = expand(_entries(point), everywhere, lambda _: True)
        return {entry.name: entry.weight or 1 for entry in merged}


def _entries(plugins: PluginSet) -> EntrySet:
    """Return a set as the rules for merging take it."""
    enabled = tuple(Entry(plugin.name, plugin.weight) for plugin in plugins.enabled)
    return EntrySet(enabled, frozenset(plugin.name for plugin in plugins.disabled))


class PluginConfigEntry(_Part, frozen=True):
    """Arguments of an in-tree plugin."""

    name: str
    args: dict[str, Any] = {}


DEFAULT_NAME = "default-scheduler"
"""The schedulerName of pods that name none."""

DEFAULT_TIMEOUT = 5.0  # seconds; what kube-scheduler takes when httpTimeout is 0 or absent


class ManagedResource(_Part, frozen=True):
    """A resource that makes an extender interested in a pod."""

    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLS(_Part, frozen=True):
    """How to reach an https extender; inline data is not supported here, only files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""


Verb = Literal["filter", "prioritize", "preempt", "bind"]

VERBS: tuple[Verb, ...] = get_args(Verb)
"""What an extender may be asked, in the order in which the configuration is written."""


class ExtenderConfig(_Part, frozen=True):
    """One extender. Empty verbs are not offered."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    http_timeout: str = msgspec.field(default="0s", name="httpTimeout")
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


class KubeSchedulerProfile(_Part, frozen=True):
    """Which pods are scheduled, and by which in-tree plugins."""

    scheduler_name: str = DEFAULT_NAME
    percentage_of_nodes_to_score: Annotated[int, Meta(ge=0, le=100)] | None = None
    plugins: ProfilePlugins = ProfilePlugins()
    plugin_config: tuple[PluginConfigEntry, ...] = ()

    @property
    def filters(self) -> tuple[str, ...]:
        """The plugins at the extension point Filter, in order."""
        return tuple(self.plugins.at(self.plugins.filter))

    @property
    def scores(self) -> Mapping[str, int]:
        """The plugins at the extension point Score, in order, with their weights."""
        return self.plugins.at(self.plugins.score)

    @property
    def post_filters(self) -> tuple[str, ...]:
        """The plugins at the extension point PostFilter, in order."""
        return tuple(self.plugins.at(self.plugins.post_filter))

    def arguments(self, plugin: str) -> Mapping[str, Any]:
        """Return the arguments of a plugin, without the head that names their kind."""
        found = next((entry.args for entry in self.plugin_config if entry.name == plugin), {})
        return {key: value for key, value in found.items() if key not in ("apiVersion", "kind")}


class KubeSchedulerConfiguration(_Part, frozen=True):
    """A KubeSchedulerConfiguration; backoffs are in seconds."""

    api_version: Literal["kubescheduler.config.k8s.io/v1"]
    kind: Literal["KubeSchedulerConfiguration"]
    parallelism: int = 16
    leader_election: Mapping[str, Any] = msgspec.field(default_factory=dict)
    client_connection: Mapping[str, Any] = msgspec.field(default_factory=dict)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    percentage_of_nodes_to_score: Annotated[int, Meta(ge=0, le=100)] = 0
    pod_initial_backoff_seconds: Annotated[int, Meta(gt=0)] = 1
    pod_max_backoff_seconds: Annotated[int, Meta(gt=0)] = 10
    profiles: tuple[KubeSchedulerProfile, ...] = (KubeSchedulerProfile(),)
    extenders: tuple[ExtenderConfig, ...] = ()

    @property
    def scheduler_names(self) -> list[str]:
        """The schedulerNames of the pods that are scheduled."""
        return [profile.scheduler_name for profile in self.profiles]

    @property
    def ignored_resources(self) -> frozenset[str]:
        """Resources that only an extender counts."""
        managed = (r for extender in self.extenders for r in extender.managed_resources)
        return frozenset(r.name for r in managed if r.ignored_by_scheduler)


DEFAULT_CONFIGURATION = KubeSchedulerConfiguration(
    api_version="kubescheduler.config.k8s.io/v1", kind="KubeSchedulerConfiguration"
)
"""What kube-scheduler does without a configuration file."""


def load_configuration(path: Path, extender_url: str | None = None) -> KubeSchedulerConfiguration:
    """Read a configuration file; `extender_url` replaces every urlPrefix, and TLS if it is plain.

    Raises:
        ConfigurationError: The file cannot be read, or kube-scheduler would not start with it.
    """
    text = read(path)
    try:
        return parse_configuration(text, extender_url)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def parse_configuration(text: str, extender_url: str | None = None) -> KubeSchedulerConfiguration:
    """Read a configuration from YAML; see `load_configuration`."""
    try:
        tree = read_tree(text, "KubeSchedulerConfiguration")
        tree.refuse(tree.problems)
        configuration = msgspec.convert(tree.value, KubeSchedulerConfiguration)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"not a valid KubeSchedulerConfiguration: {error}") from error
    if extender_url is not None:
        is_plain = extender_url.startswith("http:")
        plain = {"enable_https": False, "tls_config": None} if is_plain else {}
        moved = (
            msgspec.structs.replace(extender, url_prefix=extender_url, **plain)
            for extender in configuration.extenders
        )
        configuration = msgspec.structs.replace(configuration, extenders=tuple(moved))
    if problem := next(_problems(configuration), None):
        raise ConfigurationError(problem)
    return configuration


def _problems(configuration: KubeSchedulerConfiguration) -> Iterator[str]:
    if configuration.pod_max_backoff_seconds < configuration.pod_initial_backoff_seconds:
        yield "podMaxBackoffSeconds: must not be below podInitialBackoffSeconds"
    if not configuration.profiles:
        yield "profiles: at least one is required"
    names = Counter(profile.scheduler_name for profile in configuration.profiles)
    for index, profile in enumerate(configuration.profiles):
        if names[profile.scheduler_name] > 1:
            yield f"profiles[{index}].schedulerName: {profile.scheduler_name!r} is given twice"
    yield from _extender_problems(configuration.extenders)


def _extender_problems(extenders: tuple[ExtenderConfig, ...]) -> Iterator[str]:
    managed: Counter[str] = Counter(r.name for e in extenders for r in e.managed_resources)
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield f"{path}.weight: must be positive where prioritizeVerb is set"
        for resource in extender.managed_resources:
            if managed[resource.name] > 1:
                yield f"{path}.managedResources: {resource.name!r} is managed twice"
        try:
            parse_duration(extender.http_timeout)
        except ValueError as error:
            yield f"{path}.httpTimeout: {error}"
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        yield f"extenders: found {binders} with bindVerb, only one extender can implement bind"
