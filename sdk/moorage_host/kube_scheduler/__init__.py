"""What the real kube-scheduler is configured with, read as it reads it.

The command, the doctor and the stand-in read a KubeSchedulerConfiguration here, and nowhere else.
"""

from moorage_host.kube_scheduler.configuration import (
    DEFAULT_CONFIGURATION,
    DEFAULT_NAME,
    DEFAULTS,
    VERBS,
    ExtenderConfig,
    ExtenderTLS,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    ManagedResource,
    Verb,
    load_configuration,
    parse_configuration,
)

__all__ = [
    "DEFAULTS",
    "DEFAULT_CONFIGURATION",
    "DEFAULT_NAME",
    "VERBS",
    "ExtenderConfig",
    "ExtenderTLS",
    "KubeSchedulerConfiguration",
    "KubeSchedulerProfile",
    "ManagedResource",
    "Verb",
    "load_configuration",
    "parse_configuration",
]
