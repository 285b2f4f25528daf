"""Keeps the pods of one pipeline run together on a node, and runs apart from each other."""

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from moorage import (
    ENDED_PODS,
    SKIP,
    Amounts,
    Arguments,
    FilterPlugin,
    Mask,
    Meta,
    Nodes,
    Objects,
    Pod,
    Preparation,
    Rejection,
    Scope,
    Verdicts,
)
from moorage.models import LabelSelector, PodAffinityTerm, Requirement

ELSEWHERE = Rejection("node(s) didn't run the other pods of the PipelineRun")
OCCUPIED = Rejection(
    "node(s) already ran another PipelineRun", unresolvable=False, cured_by="capacity"
)

EVERY_NAMESPACE = LabelSelector()

Run = tuple[str, str]
"""A run's namespace, empty if namespaces do not matter, and its name."""


class OneNodePerPipelineRun(FilterPlugin):
    """Keeps the pods of a Tekton PipelineRun on one node, optionally without other runs there.

    Pods belong to a run if they carry its label; others may run anywhere. The first pod of a run
    claims its node, so that the next ones follow it before it is bound. If a run is on several
    nodes all the same, its pods may go to any of them.
    """

    reads = (ENDED_PODS,)
    depends_on = Scope.CLUSTER
    pod_fields = ("metadata.namespace", "metadata.labels")

    class Args(Arguments):
        """How strictly runs are kept apart, what makes a run, and whether ended pods hold it.

        Attributes:
            isolation_strategy: Whether a node may also have pods of other runs, only ended ones, or
                none at all.
            label_key: The label whose value is the name of the run.
            namespaced: Whether runs of the same name in two namespaces are two runs.
            include_completed: Whether ended pods still bind their run to their node until they are
                deleted.
        """

        isolation_strategy: Literal["colocateAlways", "colocateCompleted", "isolateAlways"] = (
            "colocateAlways"
        )
        label_key: Annotated[str, Meta(min_length=1)] = "tekton.dev/pipelineRun"
        namespaced: bool = True
        include_completed: bool = False

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods that belong to no run."""
        return None if self.args.label_key in pod.labels else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes without the run if it is somewhere already, and those of other runs."""
        verdicts, own = nodes.verdicts(), self._pods_of_run(pod, nodes)
        here, anywhere = own > 0, self._pods_of_run(pod, nodes.cluster).any()
        if self.args.include_completed:
            ended = self._ended(nodes).get(self._run_of(pod), ())
            here |= _named(nodes, ended)
            anywhere |= _named(nodes.cluster, ended).any()
        if anywhere:
            verdicts.reject(~here, ELSEWHERE)
        if self.args.isolation_strategy != "colocateAlways":
            verdicts.reject(self._pods_of_any_run(nodes) > own, OCCUPIED)
        if self.args.isolation_strategy == "isolateAlways":
            verdicts.reject(_named(nodes, self._ended_others(pod, nodes)), OCCUPIED)
        return verdicts

    def wants_claim(self, pod: Pod) -> bool:
        """Claim the node: where this pod goes, the others of its run go too."""
        return self.args.label_key in pod.labels

    def _run_of(self, pod: Pod) -> Run:
        return pod.namespace if self.args.namespaced else "", pod.labels[self.args.label_key]

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

    def _ended(self, nodes: Nodes) -> Mapping[Run, set[str]]:
        """Return the nodes of the ended pods of each run."""
        key = (self.name, self.args.label_key, self.args.namespaced)
        found: Mapping[Run, set[str]] = nodes.objects(ENDED_PODS, Pod).derived(key, self._by_run)
        return found

    def _by_run(self, pods: Objects[Pod]) -> Mapping[Run, set[str]]:
        found: dict[Run, set[str]] = {}
        for pod in pods:
            if self.args.label_key in pod.labels and pod.spec.node_name:
                found.setdefault(self._run_of(pod), set()).add(pod.spec.node_name)
        return found

    def _ended_others(self, pod: Pod, nodes: Nodes) -> set[str]:
        own = self._run_of(pod)
        return {name for run, names in self._ended(nodes).items() if run != own for name in names}


def _named(nodes: Nodes, names: Collection[str]) -> Mask:
    return nodes.encoded("name", lambda node: node.name).isin(names)
