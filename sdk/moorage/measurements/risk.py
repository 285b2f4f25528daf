"""How likely a node is overloaded, by the beta distribution of its use and by limits of pods.

Utilization lies between 0 and 1, so a beta distribution with the measured mean and deviation is its
usual model. In numpy for all nodes at once. What counts as safe is as in the
kube-safe-scheduler of IBM. Limits are no column of the snapshot, because few plugins read them:
each pod is computed once.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from moorage.measurements.load import LoadArguments, LoadMeter, Resource
from moorage.models import Container, Pod
from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes
from moorage.units.quantity import scaled

Pair = tuple[int, int]

CAPACITY: Final = 200_000
"""How many pods are cached: those of a large cluster. A full cache is emptied."""


class Limits:
    """Caches the limits of pods from one cycle to the next."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Pod, Pair]] = {}

    def of_pod(self, pod: Pod) -> Pair:
        """Return the limits of CPU and memory, or the requests where those are higher."""
        return _at_least_requests(pod, _sum_of_limits(pod))

    def of_nodes(self, nodes: Nodes) -> tuple[Scores, Scores]:
        """Return the sums over the pods of each of *nodes*, by CPU and by memory."""
        totals = np.zeros((len(nodes), 2))
        for index, node in enumerate(nodes):
            pairs = [self._cached(pod) for pod in node.pods]
            totals[index] = [sum(column) for column in zip(*pairs, strict=True)] or (0, 0)
        return totals[:, 0], totals[:, 1]

    def _cached(self, pod: Pod) -> Pair:
        known = self._known.get(pod.uid)
        if known is None or known[0] is not pod:
            if len(self._known) >= CAPACITY:
                self._known.clear()
            # Each pod is cached at once: a cycle that runs out of time keeps what it has done.
            known = self._known[pod.uid] = (pod, self.of_pod(pod))
        return known[1]


def _at_least_requests(pod: Pod, limits: Mapping[str, int]) -> Pair:
    cpu, memory = (max(limits[r], pod.requests.get(r, 0)) for r in ("cpu", "memory"))
    return cpu, memory


def _sum_of_limits(pod: Pod) -> Mapping[str, int]:
    spec = pod.spec
    return {
        resource: max(
            sum(_limits(spec.containers, resource)),
            *_limits(spec.init_containers, resource),
            0,
        )
        + scaled(resource, spec.overhead.get(resource, 0))
        for resource in ("cpu", "memory")
    }


def _limits(containers: Iterable[Container], resource: str) -> Iterable[int]:
    return (scaled(resource, c.resources.limits.get(resource, 0)) for c in containers)


MAX_TERMS: Final = 20_000
"""Terms of the continued fraction; it takes about the square root of the larger parameter."""

_PRECISION: Final = 1e-14
_TINY: Final = 1e-300
_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


def probability_below(limit: npt.ArrayLike, mean: Scores, deviation: Scores) -> Scores:
    """Return how likely a share with this mean and standard deviation is at most *limit*.

    All are shares, 0..1. Without deviation it is certain, one way or the other; a deviation too
    large for any distribution makes it impossible. NaN where mean or deviation is.
    """
    at, mean, deviation = np.broadcast_arrays(np.asarray(limit, np.float64), mean, deviation)
    result = np.where((mean == 0) | ((deviation == 0) & (mean <= at)) | (at >= 1), 1.0, 0.0)
    room = mean * (1 - mean) - deviation**2
    fits = (mean > 0) & (deviation > 0) & (room > 0) & (at > 0) & (at < 1)
    size = room[fits] / deviation[fits] ** 2
    result[fits] = beta_cdf(at[fits], mean[fits] * size, (1 - mean[fits]) * size)
    result[np.isnan(mean) | np.isnan(deviation) | np.isnan(at)] = np.nan
    return result


def beta_cdf(x: Scores, alpha: Scores, beta: Scores) -> Scores:
    """Return the regularised incomplete beta function of *x* in (0, 1) and positive parameters."""
    mirrored = x > (alpha + 1) / (alpha + beta + 2)  # the fraction is fast on one side only
    a, b = np.where(mirrored, beta, alpha), np.where(mirrored, alpha, beta)
    z = np.where(mirrored, 1 - x, x)
    logarithm = a * np.log(z) + b * np.log1p(-z)
    logarithm += _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    value: Scores = np.exp(logarithm) * _continued_fraction(z, a, b) / a
    return np.where(mirrored, 1 - value, value).clip(0, 1)


def _continued_fraction(x: Scores, a: Scores, b: Scores) -> Scores:
    """Evaluate the incomplete beta function's continued fraction by Lentz's method."""
    result = np.ones(len(x))
    open_ = np.arange(len(x))
    c, d = np.ones(len(x)), _inverse(1 - (a + b) * x / (a + 1))
    result *= d
    for term in range(1, MAX_TERMS):
        if not len(open_):
            break
        even = term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term))
        odd = -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1))
        change = np.ones(len(x))
        for numerator in (even, odd):
            d = _inverse(1 + numerator * d)
            c = _away_from_zero(1 + numerator / c)
            change = c * d
            result[open_] *= change
        going = np.abs(change - 1) > _PRECISION
        if not going.all():
            x, a, b, c, d = (array[going] for array in (x, a, b, c, d))
            open_ = open_[going]
    return result


def _inverse(values: Scores) -> Scores:
    return 1 / _away_from_zero(values)


def _away_from_zero(values: Scores) -> Scores:
    return np.where(np.abs(values) < _TINY, _TINY, values)


Percent = Annotated[int, Meta(ge=0, le=100)]


class SafeArguments(LoadArguments):
    """What counts as overload, and how likely it may be, in percent.

    Attributes:
        safe_utilization: The utilization above which a node is overloaded.
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
