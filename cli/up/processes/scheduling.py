"""The KubeSchedulerConfiguration of the stand-in for kube-scheduler, and what follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cli.config.extender import extender_weight
from moorage.errors import ConfigurationError
from sandbox.scheduler.config import load_configuration

HOME = Path(__file__).resolve().parents[3]

SHIPPED = HOME / "deploy" / "files" / "kube-scheduler-config.yaml"
"""What the real kube-scheduler is deployed with."""


_OF_CYCLES = ("filterVerb", "prioritizeVerb", "preemptVerb", "weight")
"""Fields of an entry that one for binds does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """What the stand-in reads.

    Attributes:
        text: The configuration.
        http_timeout: Seconds that it gives a call of the extender; None if the services keep their
            own, because it is the shipped one or has no limit.
    """

    text: str
    http_timeout: float | None

    @property
    def gateway_options(self) -> list[str]:
        """The options with which the gateway answers within that time."""
        return [f"--http-timeout={self.http_timeout:g}s"] if self.http_timeout else []

    @property
    def binder_options(self) -> list[str]:
        """The options with which the binder uses that time."""
        return [f"--bind-timeout={self.http_timeout:g}s"] if self.http_timeout else []


def read_scheduler_config(
    given: Path | None, profiles: Sequence[str], score_scale: int
) -> SchedulerConfig:
    """Read a configuration, by default the shipped one, and have it serve the policy's profiles.

    It calls all verbs: plugins that are loaded later may need them. Binds have an entry of their
    own, as `moorage config extender` prints it, unless the configuration has one. The weight of the
    shipped one becomes the one that is printed.

    Raises:
        ConfigurationError: kube-scheduler would not start with it, or none of its extenders filters
            or scores.
    """
    file = given or SHIPPED
    extenders = load_configuration(file).extenders
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    cycles = [each for each in document.get("extenders") or () if not _only_binds(each)]
    if len(cycles) != 1 or len(extenders) > 2:
        raise ConfigurationError(
            f"{file}: extenders: must have one for Moorage, and may have one more for its binds, "
            f"not {len(extenders)}; `moorage config extender` prints them"
        )
    if not given:
        cycles[0]["weight"] = extender_weight(score_scale)
    if not any(each.bind_verb for each in extenders):
        document["extenders"] = _with_binds(cycles[0])
    known = {each.get("schedulerName"): each for each in document["profiles"]}
    document["profiles"] = [known.get(name, {"schedulerName": name}) for name in profiles]
    timeouts = [each.timeout for each in extenders if each.timeout is not None]
    timeout = min(timeouts, default=None) if given else None
    return SchedulerConfig(text=yaml.safe_dump(document), http_timeout=timeout)


def _only_binds(extender: Mapping[str, object]) -> bool:
    return bool(extender.get("bindVerb")) and not any(extender.get(verb) for verb in _OF_CYCLES)


def _with_binds(cycle: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return an entry and one for binds; kube-scheduler refuses a resource in two entries."""
    if cycle.get("managedResources"):
        return [{**cycle, "bindVerb": "bind"}]
    binds = {key: value for key, value in cycle.items() if key not in _OF_CYCLES}
    return [cycle, {**binds, "bindVerb": "bind", "ignorable": False}]
