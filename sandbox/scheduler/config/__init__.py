"""The KubeSchedulerConfiguration that the real kube-scheduler is deployed with."""

from sandbox.scheduler.config.document import Configuration, ExtenderConfig, Profile
from sandbox.scheduler.config.loading import load_configuration, parse_configuration

__all__ = [
    "Configuration",
    "ExtenderConfig",
    "Profile",
    "load_configuration",
    "parse_configuration",
]
