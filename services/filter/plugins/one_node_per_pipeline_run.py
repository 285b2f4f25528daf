"""Keeps the pods of one pipeline run together on a node, and runs apart from each other."""

from typing import Annotated, Literal

from moorage import (
    SKIP,
    Amounts,
    Arguments,
    FilterPlugin,
    Meta,
    Nodes,
    Pod,
    Preparation,
    Rejection,
    Verdicts,
)
from moorage.models import LabelSelector, PodAffinityTerm, Requirement

ELSEWHERE = Rejection("node(s) didn't run the other pods of the PipelineRun")
OCCUPIED = Rejection("node(s) already ran another PipelineRun", unresolvable=False)

EVERY_NAMESPACE = LabelSelector()


class OneNodePerPipelineRun(FilterPlugin):
    """Keeps the pods of a Tekton PipelineRun on one node, optionally without other runs there.

    Pods belong to a run if they carry its label; others may run anywhere. The first pod of a run
    claims its node, so that the next ones follow it before it is bound. If a run is on several
    nodes all the same, its pods may go to any of them.
    """

    class Args(Arguments):
        """How strictly runs are kept apart, and what makes a run."""

        isolation_strategy: Literal["colocateAlways", "colocateCompleted"] = "colocateAlways"
        label_key: Annotated[str, Meta(min_length=1)] = "tekton.dev/pipelineRun"
        namespaced: bool = True

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods that belong to no run."""
        return None if self.args.label_key in pod.labels else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes without the run if it is somewhere already, and those of other runs."""
        own, verdicts = self._pods_of_run(pod, nodes), nodes.verdicts()
        if own.any() or self._pods_of_run(pod, nodes.cluster).any():
            verdicts.reject(own == 0, ELSEWHERE)
        if self.args.isolation_strategy != "colocateAlways":
            verdicts.reject(self._pods_of_any_run(nodes) > own, OCCUPIED)
        return verdicts

    def reserve(self, pod: Pod) -> bool:
        """Claim the node: where this pod goes, the others of its run go too."""
        return True

    def _pods_of_run(self, pod: Pod, nodes: Nodes) -> Amounts:
        key = self.args.label_key
        run = LabelSelector(match_labels={key: pod.labels[key]})
        anywhere = None if self.args.namespaced else EVERY_NAMESPACE
        term = PodAffinityTerm(label_selector=run, namespace_selector=anywhere)
        return nodes.count_pods([term], pod.namespace)

    def _pods_of_any_run(self, nodes: Nodes) -> Amounts:
        labelled = Requirement(key=self.args.label_key, operator="Exists")
        selector = LabelSelector(match_expressions=(labelled,))
        term = PodAffinityTerm(label_selector=selector, namespace_selector=EVERY_NAMESPACE)
        return nodes.count_pods([term], "")
