"""kube-scheduler 1.37 as an extender sees it: its configuration, and how it decides.

The stand-in for it, the command and the doctor read a KubeSchedulerConfiguration here, and nowhere
else. `scheduling` decides for the stand-in on a live API server, with extenders over HTTP, and for
simulations in a copy of a cluster, with plugins in this process.
"""

from moorage_host.kube_scheduler.configuration.document import (
    DEFAULT_CONFIGURATION,
    DEFAULT_NAME,
    VERBS,
    ExtenderConfig,
    ExtenderTLS,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    ManagedResource,
    Verb,
)
from moorage_host.kube_scheduler.configuration.plugins import DEFAULTS, NEWEST
from moorage_host.kube_scheduler.configuration.reading import (
    find_configuration_problems,
    load_configuration,
    parse_configuration,
)

__all__ = [
    "DEFAULTS",
    "DEFAULT_CONFIGURATION",
    "DEFAULT_NAME",
    "NEWEST",
    "VERBS",
    "ExtenderConfig",
    "ExtenderTLS",
    "KubeSchedulerConfiguration",
    "KubeSchedulerProfile",
    "ManagedResource",
    "Verb",
    "find_configuration_problems",
    "load_configuration",
    "parse_configuration",
]
