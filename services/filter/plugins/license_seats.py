"""Keeps pods pending while all seats of their license, or of any other label, are taken."""

from typing import Annotated

from msgspec import field

from moorage import (
    SKIP,
    Arguments,
    FilterPlugin,
    Meta,
    Nodes,
    Pod,
    Preparation,
    Rejection,
    Scope,
    Verdicts,
)
from moorage.models import LabelSelector, PodAffinityTerm

TAKEN = Rejection("all seats of the pod's license are taken", unresolvable=False)

EVERY_NAMESPACE = LabelSelector()


class LicenseSeats(FilterPlugin):
    """Limits how many pods with the same value of a label run at a time.

    A pod claims its node, so that pods that come at once cannot take the last seat twice. Pods on
    nodes count, those that have ended do not; pods without the label run anywhere.
    """

    depends_on = Scope.CLUSTER
    pod_fields = ("metadata.namespace", "metadata.labels")

    class Args(Arguments):
        """What makes a license, and how many pods may use it.

        Attributes:
            label_key: The label whose value is the name of the license.
            seats: How many pods may run at a time, by the value of the label.
            other_seats: The same for values that are not in `seats`; -1 for no limit.
            namespaced: Whether each namespace has seats of its own.
        """

        label_key: Annotated[str, Meta(min_length=1)] = "example.com/license"
        seats: dict[str, Annotated[int, Meta(ge=0)]] = field(default_factory=dict)
        other_seats: Annotated[int, Meta(ge=-1)] = -1
        namespaced: bool = False

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods without a limit."""
        return SKIP if self._seats(pod) < 0 else None

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject all nodes if all seats are taken in the cluster."""
        key = self.args.label_key
        term = PodAffinityTerm(
            label_selector=LabelSelector(match_labels={key: pod.labels[key]}),
            namespace_selector=None if self.args.namespaced else EVERY_NAMESPACE,
        )
        taken = int(nodes.cluster.count_pods([term], pod.namespace).sum())
        verdicts, seats = nodes.verdicts(), self._seats(pod)
        if taken >= seats:
            self.note(f"{taken} of {seats} seats of {pod.labels[key]} are taken")
            verdicts.reject(nodes.rows >= 0, TAKEN)
        return verdicts

    def wants_claim(self, pod: Pod) -> bool:
        """Claim the node: the next pod must see that the seat is taken."""
        return self._seats(pod) >= 0

    def _seats(self, pod: Pod) -> int:
        """Return how many pods may have the label's value; -1 for any number."""
        value = pod.labels.get(self.args.label_key)
        return -1 if value is None else self.args.seats.get(value, self.args.other_seats)
