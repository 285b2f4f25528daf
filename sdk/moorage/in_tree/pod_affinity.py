"""What the plugins InterPodAffinity of the filter and scorer services share."""

from typing import Annotated, Final

from msgspec import Meta

from moorage.models import Pod, PodAffinity
from moorage.plugin.arguments import Arguments

_NONE: Final = PodAffinity()


class InterPodAffinityArguments(Arguments):
    """How the affinities of pods that already run count in scores; filters do not read it.

    Attributes:
        hard_pod_affinity_weight: The weight of the required affinity of running pods; 0 ignores it.
        ignore_preferred_terms_of_existing_pods: Skip pods that prefer nothing themselves.
    """

    hard_pod_affinity_weight: Annotated[int, Meta(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def pod_affinity(pod: Pod) -> PodAffinity:
    """Return the pods that *pod* wants near it."""
    return (pod.spec.affinity and pod.spec.affinity.pod_affinity) or _NONE


def pod_anti_affinity(pod: Pod) -> PodAffinity:
    """Return the pods that *pod* wants far from it."""
    return (pod.spec.affinity and pod.spec.affinity.pod_anti_affinity) or _NONE
