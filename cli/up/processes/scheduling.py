"""The KubeSchedulerConfiguration of the stand-in for kube-scheduler, and what follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cli.config.extender import extender_weight
from moorage.errors import ConfigurationError
from sandbox.scheduler.config import load_configuration

HOME = Path(__file__).resolve().parents[3]

SHIPPED = HOME / "deploy" / "kustomize" / "base" / "kube-scheduler-config.yaml"
"""What the real kube-scheduler is deployed with."""


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

    It calls all verbs: plugins that are loaded later may need them. The weight of the shipped one
    becomes the one that `moorage config extender` prints.

    Raises:
        ConfigurationError: kube-scheduler would not start with it, or it has not one extender.
    """
    file = given or SHIPPED
    extenders = load_configuration(file).extenders
    if len(extenders) != 1:
        raise ConfigurationError(
            f"{file}: extenders: must have one, for Moorage, not {len(extenders)}; "
            "`moorage config extender` prints it"
        )
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["extenders"][0]["bindVerb"] = "bind"
    if not given:
        document["extenders"][0]["weight"] = extender_weight(score_scale)
    known = {each.get("schedulerName"): each for each in document["profiles"]}
    document["profiles"] = [known.get(name, {"schedulerName": name}) for name in profiles]
    timeout = extenders[0].timeout if given else None
    return SchedulerConfig(text=yaml.safe_dump(document), http_timeout=timeout)
