"""The fields of a KubeSchedulerConfiguration.

Those that a stand-in has no use for are known and ignored.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from moorage.units.durations import parse_duration
from sandbox.scheduler.config.plugins import PluginArguments, Plugins, Strict

DEFAULT_NAME = "default-scheduler"
"""The schedulerName of pods that name none."""

DEFAULT_TIMEOUT = 5.0  # seconds; what kube-scheduler takes when httpTimeout is 0 or absent


class ManagedResource(Strict, frozen=True):
    """A resource that makes an extender interested in a pod."""

    name: str
    ignored_by_scheduler: bool = False


class TLS(Strict, frozen=True):
    """How to reach an https extender; inline data is not supported here, only files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""


class ExtenderConfig(Strict, frozen=True):
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
    tls_config: TLS | None = None

    @property
    def timeout(self) -> float | None:
        """Seconds for a whole call; None means no limit, which Go makes of a negative duration."""
        seconds = parse_duration(self.http_timeout)
        if seconds < 0:
            return None
        return seconds or DEFAULT_TIMEOUT


class Profile(Strict, frozen=True):
    """Which pods are scheduled, and by which in-tree plugins."""

    scheduler_name: str = DEFAULT_NAME
    percentage_of_nodes_to_score: Annotated[int, Meta(ge=0, le=100)] | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginArguments, ...] = ()

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


class Configuration(Strict, frozen=True):
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
    profiles: tuple[Profile, ...] = (Profile(),)
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


DEFAULT_CONFIGURATION = Configuration(
    api_version="kubescheduler.config.k8s.io/v1", kind="KubeSchedulerConfiguration"
)
"""What kube-scheduler does without a configuration file."""
