"""The hooks: all that an author overrides, in the order in which a pod meets them.

A plugin subclasses one or more of `FilterPlugin`, `ScorePlugin` and `BindPlugin`. Write the
per-node form (`filter_node`, `score_node`) for plain Python, or the batch form (`filter`, `score`)
for numpy over columns. One instance serves one profile. Cycles use it one after another, so what
`prepare` keeps on the instance is there for the same cycle's `filter` or `score`. Binds run side by
side.

Each hook names a plugin or a page that shows it: the built-in plugins are in
`services/*/plugins`, the pages in `docs/how-to/plugins`. What a plugin calls is in `base`, what
hooks take and return in `values`. `definition` reads this module: a method with `@hook`, and a
class attribute without an underscore, is what authors may override.
"""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from moorage.groups import Group
from moorage.models import ObjectKind, Pod
from moorage.plugin.arguments import Arguments, NoArguments
from moorage.plugin.base import FilterBase, PluginBase
from moorage.plugin.definition import hook
from moorage.plugin.errors import WrongTypeError
from moorage.plugin.normalization import Normalization, Scores
from moorage.plugin.values import (
    DEFAULT_TIME_BUDGET,
    Allow,
    Binding,
    Permission,
    Preparation,
    Refusal,
    Scope,
)
from moorage.snapshot import Node, Nodes
from moorage.snapshot.verdicts import CuredBy, Rejection, Verdicts

_USUAL = (float, int)


class Plugin(PluginBase, abstract=True):
    """What all plugins share.

    A base class for plugins, which has not all methods of a plugin yet, is defined with
    `class Base(FilterPlugin, abstract=True)`.

    Attributes:
        name: The name in the policy; the name of the class unless set.
        reads: Additional kinds of objects that it reads, see `Nodes.objects`; a bind plugin needs
            `reads_snapshot` for that.
        depends_on: What its verdict on a node, or its raw score of it, depends on. The
            gateway caches them by this. Not inherited, since a subclass may depend on more; not
            for bind plugins.
        reads_placements: Whether it reads which pods are on nodes or what they request
            (`node.pods`, `node.requested`). Then Moorage has to bind, so that a pod counts on its
            node as soon as binding starts. False saves the bindVerb. Not inherited; not for bind
            plugins.
        pod_fields: Which fields of the pod's signature it reads, as JSON paths:
            ("spec.tolerations", "spec.containers[*].image"). Pods that differ elsewhere are equal
            for it. () is none, None all of them. Not inherited.
        Args: The class of its arguments: `class Args(Arguments)` inside of the plugin's class.
        managed_resources: Resources such as "example.com/gpu", if it concerns only pods of which a
            container or init container requests or limits one of these. If that holds for all
            plugins of a policy, kube-scheduler need not ask Moorage about other pods. () stands for
            all pods. Not inherited.
        cured_by: Of a filter plugin: what cures its rejections that do not say it themselves,
            "capacity" if a new node would pass. Then `moorage capacity` may ask for one.
        time_budget: Seconds that it may take at each extension point, and at each step of its
            background work, unless the policy sets `timeBudget`: above 0, at most 60.
    """

    name: ClassVar[str] = ""
    reads: ClassVar[tuple[ObjectKind, ...]] = ()
    depends_on: ClassVar[Scope] = Scope.ANYTHING
    reads_placements: ClassVar[bool] = True
    pod_fields: ClassVar[tuple[str, ...] | None] = None
    managed_resources: ClassVar[tuple[str, ...]] = ()
    cured_by: ClassVar[CuredBy] = "nothing"
    time_budget: ClassVar[float] = DEFAULT_TIME_BUDGET
    Args: ClassVar[type[Arguments]] = NoArguments

    @hook(shown_by="MaintenanceWindows")
    async def start(self) -> None:
        """Get ready, and begin `background` work; called once before the first cycle."""

    @hook(shown_by="TargetLoadPacking")
    async def stop(self) -> None:
        """Undo `start`; called once after the last cycle. Background work has ended by itself."""

    @hook(shown_by="NodeGroup")
    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Look at *pod* before its nodes (PreFilter, PreScore); None goes on with all nodes."""
        return None


class FilterPlugin(Plugin, FilterBase, abstract=True):
    """Rules nodes out. Override `filter_node` or `filter`, or only `group`."""

    _forms: ClassVar[tuple[str, ...]] = ("filter_node", "filter")
    _enough: ClassVar[tuple[str, ...]] = ("group",)

    @hook(shown_by="Gang")
    def group(self, pod: Pod, nodes: Nodes) -> Group | None:
        """Return the group that *pod* belongs to if it is to be placed as a whole, or None.

        Then a place for each member is looked for before the pod gets any: one after another, by
        the filters of the profile and what kube-scheduler's own filters look at most. If they do
        not fit, the pod is rejected on all nodes; if they do, all of them hold the nodes that were
        found. Called before all else of the cycle. *nodes* are those of the pod, `nodes.cluster`
        all of them; members on nodes, bound or not, are in `node.pods`.
        """
        return None

    @hook(shown_by="MaintenanceWindows")
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why *node* cannot run *pod*, or None if it can."""
        raise NotImplementedError(f"{self.name} has neither filter_node nor filter")

    @hook(shown_by="StatefulSetZone")
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

    @hook(shown_by="OneNodePerPipelineRun")
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


_GROUP = FilterPlugin.group


class ScorePlugin(Plugin, abstract=True):
    """Ranks nodes. Override `score_node` or `score`.

    Attributes:
        normalization: How scores become 0..100, unless `normalize` is overridden.
        weight: How much its scores count beside those of other score plugins, where the policy
            gives no weight.
    """

    _forms: ClassVar[tuple[str, ...]] = ("score_node", "score")

    normalization: ClassVar[Normalization] = Normalization.NONE
    weight: ClassVar[int] = 1

    @hook(shown_by="docs/how-to/plugins/write.md")
    def score_node(self, pod: Pod, node: Node) -> float:
        """Return how good *node* is for *pod*: any finite number."""
        raise NotImplementedError(f"{self.name} has neither score_node nor score")

    @hook(shown_by="ImageLocality")
    def score(self, pod: Pod, nodes: Nodes) -> npt.ArrayLike:
        """Return a finite number for each of *nodes*.

        Other replicas may score others: compare nodes in `prepare` or `normalize`, which see all.
        """
        scores, score_node = [], self.score_node
        for node in nodes:
            score = score_node(pod, node)
            if type(score) not in _USUAL and not _is_number(score):
                raise WrongTypeError(self.score_node, score, "a number", node=node.name)
            scores.append(score)
        return scores

    @hook(shown_by="NodeMetadata")
    def normalize(self, scores: Scores) -> npt.ArrayLike:
        """Map the scores of all nodes of the cycle onto 0..100, by default by `normalization`."""
        return self.normalization.apply(scores)


class BindPlugin(Plugin, abstract=True):
    """Acts before and after a pod is bound. Override `permit`, `pre_bind` or `post_bind`.

    Binds of several pods run at the same time: keep what belongs to one pod by its uid.

    Attributes:
        reads_pod: Whether it needs `binding.pod`, or should not be asked about pods that are bound
            already. False saves a request to the API server if no plugin of the profile needs it.
        reads_snapshot: Whether it needs `binding.nodes`. The gateway sends the binder the state of
            the cluster while such a plugin is enabled, with the objects of `reads`.
    """

    _enough: ClassVar[tuple[str, ...]] = ("permit", "pre_bind", "post_bind")

    reads_pod: ClassVar[bool] = True
    reads_snapshot: ClassVar[bool] = False

    @hook(shown_by="GangPermit")
    def permit_key(self, binding: Binding) -> str:
        """Return the key of the binds that *binding* may have to wait for; "" if it need not.

        `permit` then sees those that have come in `binding.arrived`.
        """
        return ""

    @hook(shown_by="GangPermit")
    async def permit(self, binding: Binding) -> Permission:
        """Return `Allow()`, `Wait(seconds)` for others, or a `Refusal` (Permit).

        Called before `pre_bind`, and again for a bind that waits whenever another with the same
        `permit_key` comes; at once if that one is allowed.
        """
        return Allow()

    @hook(shown_by="DecisionAnnotation")
    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Do what must be done before *binding* is written; return why it may not be, or None.

        Called again when kube-scheduler tries the pod again, maybe for another node.
        """
        return None

    @hook(shown_by="docs/how-to/plugins/bind.md")
    async def post_bind(self, binding: Binding) -> None:
        """Do what is to be done once the pod is bound; that may be after it has started."""


def normalization_of(kind: type[ScorePlugin]) -> Normalization | None:
    """Return how a plugin's scores become 0..100; None if only its own code knows."""
    return kind.normalization if kind.normalize is ScorePlugin.normalize else None


def extension_points(kind: type[Plugin]) -> tuple[str, ...]:
    """Return Kubernetes' names of the extension points that a plugin class implements, in order."""
    prepares = kind.prepare is not Plugin.prepare
    points: list[str] = []
    if issubclass(kind, FilterPlugin):
        points += ["PreFilter", "Filter"] if prepares else ["Filter"]
    if issubclass(kind, ScorePlugin):
        normalizes = normalization_of(kind) is not Normalization.NONE
        points += ["PreScore", "Score"] if prepares else ["Score"]
        points += ["NormalizeScore"] if normalizes else []
    if issubclass(kind, FilterPlugin) and (
        kind.wants_claim is not FilterPlugin.wants_claim or kind.group is not FilterPlugin.group
    ):
        points.append("Reserve")
    if issubclass(kind, BindPlugin):
        points += ["Permit"] if kind.permit is not BindPlugin.permit else []
        points += ["PreBind"] if kind.pre_bind is not BindPlugin.pre_bind else []
        points += ["PostBind"] if kind.post_bind is not BindPlugin.post_bind else []
    return tuple(points)


def _is_number(score: object) -> bool:
    return isinstance(score, int | float | np.number) and not isinstance(score, bool)
