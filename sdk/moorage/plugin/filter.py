"""Filter plugins: they rule nodes out."""

from collections.abc import Callable

import numpy as np

from moorage.groups import Group
from moorage.models import Pod
from moorage.plugin.base import Plugin
from moorage.plugin.cycle_state import ANNOTATION, annotations_at
from moorage.plugin.errors import WrongTypeError
from moorage.snapshot import Node, Nodes
from moorage.snapshot.verdicts import Rejection, Verdicts


class FilterPlugin(Plugin, abstract=True):
    """Rules nodes out. Override `filter_node` or `filter`."""

    __report: Callable[[str, str, str], None] | None = None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why *node* cannot run *pod*, or None if it can."""
        raise NotImplementedError(f"{self.name} has neither filter_node nor filter")

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Return a verdict for each of *nodes*, which passed all filters before this one.

        Other replicas may be asked about others: a verdict must not depend on which *nodes* are.
        """
        verdicts, filter_node = nodes.verdicts(), self.filter_node
        if type(self).filter_node is FilterPlugin.filter_node and type(self).group is not _GROUP:
            return verdicts  # it names groups, and rejects no node
        rejected: dict[Rejection, list[int]] = {}
        latest, positions = None, list[int]()
        for index, node in enumerate(nodes):
            rejection = filter_node(pod, node)
            if rejection is None:
                continue
            if rejection is not latest:  # the hash of a rejection costs more than many a rule
                if not isinstance(rejection, Rejection):
                    raise WrongTypeError(
                        self.filter_node, rejection, "Rejection or None", node=node.name
                    )
                if not isinstance(rejection.reason, str):
                    raise WrongTypeError(self.filter_node, rejection.reason, "text as the reason")
                latest, positions = rejection, rejected.setdefault(rejection, [])
            positions.append(index)
        for rejection, indices in rejected.items():
            verdicts.reject_at(np.array(indices, np.intp), rejection)
        return verdicts

    def annotate(self, key: str, value: str, *, node: Node) -> None:
        """Give the pod an annotation if it comes to *node*, such as the device that it gets there.

        Later cycles see it on the pod in `node.pods`: from the pod's claim on, see `wants_claim`,
        otherwise from its bind on, which writes it. If the plugin is asked again at the bind, what
        it then says counts. Answers with annotations are not cached.

        Raises:
            TypeError: The key or the value is not text.
            ValueError: The plugin keeps too much in this cycle, see `CycleState`.
        """
        if not (isinstance(key, str) and isinstance(value, str)):
            raise TypeError(
                f"an annotation is text: got {type(key).__name__}, {type(value).__name__}"
            )
        self.cycle_state.write(ANNOTATION + key, value, node=node)

    def annotations(self, node: str) -> dict[str, str]:
        """Return what `annotate` gave the pod of the latest cycle on *node*; for tests."""
        return annotations_at(self.cycle_state.values, node)

    def retry_rejected(self, reason: str = "", namespace: str = "") -> None:
        """Have the pods that this plugin rejected tried again, soon; *reason* is what has changed.

        For changes that kube-scheduler does not see: call it in background work, in any thread.
        With a *namespace* only its pods are.
        """
        if self.__report is not None:
            self.__report(self.name, reason, namespace)

    def report_retries(self, report: Callable[[str, str, str], None]) -> None:
        """Call *report* with name, reason and namespace on `retry_rejected`; for services."""
        self.__report = report

    def wants_claim(self, pod: Pod) -> bool:
        """Return whether *pod* has to claim its node in this cycle (Reserve).

        For plugins whose verdicts on later pods depend on where this one goes: its bind comes after
        the next pods were filtered. The gateway then chooses the node in the same cycle, offers
        kube-scheduler no other, and counts the pod as on it from there on. If the claim is lost
        before the bind, this plugin is asked about the node again, and the bind fails if it rejects
        it. Called if `prepare` skipped the pod, too, since that is about verdicts; not called if no
        node is left.
        """
        return False

    def group(self, pod: Pod, nodes: Nodes) -> Group | None:
        """Return the group that *pod* belongs to if it is to be placed as a whole, or None.

        Then a place for each member is looked for before the pod gets any: one after another, by
        the filters of the profile and what kube-scheduler's own filters look at most. If they do
        not fit, the pod is rejected on all nodes; if they do, all of them hold the nodes that were
        found. Called before all else of the cycle. *nodes* are those of the pod, `nodes.cluster`
        all of them; members on nodes, bound or not, are in `node.pods`.
        """
        return None


_GROUP = FilterPlugin.group
