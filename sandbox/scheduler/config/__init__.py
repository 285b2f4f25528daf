"""The KubeSchedulerConfiguration that the real kube-scheduler is deployed with."""

from sandbox.scheduler.config.document import (
    DEFAULT_CONFIGURATION,
    DEFAULT_NAME,
    Configuration,
    ExtenderConfig,
    Profile,
)
from sandbox.scheduler.config.loading import load_configuration, parse_configuration

__all__ = [
    "DEFAULT_CONFIGURATION",
    "DEFAULT_NAME",
    "Configuration",
    "ExtenderConfig",
    "Profile",
    "load_configuration",
    "parse_configuration",
]
