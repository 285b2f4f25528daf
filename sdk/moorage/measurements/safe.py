"""What IBM's kube-safe-scheduler calls safe: how likely a pod would overload a node."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from moorage.measurements.beta import probability_below
from moorage.measurements.load import LoadArguments, LoadMeter, Resource
from moorage.models import Pod
from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes

Percent = Annotated[int, Meta(ge=0, le=100)]


class SafeArguments(LoadArguments):
    """What counts as overload, and how likely it may be, in percent.

    Attributes:
        safe_utilization: The utilisation above which a node is overloaded.
        safe_percentile: The highest tolerable probability of that.
        safe_forecast_weight: How much a forecast counts beside the mean, where one is annotated.
    """

    safe_utilization: Percent = 90
    safe_percentile: Percent = 30
    safe_forecast_weight: Percent = 20


def overload_risk(meter: LoadMeter, args: SafeArguments, pod: Pod, nodes: Nodes) -> Scores:
    """Return how likely *pod* overloads each of *nodes*, in CPU or memory, whichever is likelier.

    NaN where neither is known.
    """
    cpu, memory = (_risk(meter, args, pod, nodes, resource) for resource in _RESOURCES)
    return np.fmax(cpu, memory)


_RESOURCES: tuple[Resource, Resource] = ("cpu", "memory")


def _risk(
    meter: LoadMeter, args: SafeArguments, pod: Pod, nodes: Nodes, resource: Resource
) -> Scores:
    load = meter.load(nodes, resource, forecast_weight=args.safe_forecast_weight / 100)
    mean = load.mean_with(pod.requests.get(resource, 0))
    return 1 - probability_below(args.safe_utilization / 100, mean, load.deviation_share)
