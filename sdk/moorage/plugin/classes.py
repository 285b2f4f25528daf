"""The plugin API: what authors subclass.

A plugin is one class with typed arguments. Write the per-node form (`filter_node`, `score_node`)
for plain Python, or the batch form (`filter`, `score`) for numpy over columns. One class may be of
several kinds. One instance serves one profile; cycles use it one after another, so what `prepare`
keeps on the instance is there for the same cycle's `filter` or `score`. Binds run side by side.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.models import ObjectKind, Pod
from moorage.plugin.binding import Binding, Refusal
from moorage.plugin.normalization import Normalization, Scores
from moorage.plugin.pod_fields import check_fields
from moorage.plugin.scope import Scope
from moorage.snapshot import Node, Nodes
from moorage.snapshot.verdicts import Rejection, Verdicts

MAX_NOTE_LENGTH = 300
"""How many characters of a plugin's note are kept."""


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A plugin's arguments: fields with types, defaults and bounds; camelCase in YAML.

    Not frozen, because type checkers would then ask every author to repeat that.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What `prepare` may answer.

    Attributes:
        nodes: Go on with these nodes only; the others are rejected. None keeps all.
        skip: The plugin has nothing to say about this pod.
    """

    nodes: Nodes | None = None
    skip: bool = False


SKIP = Preparation(skip=True)


class Plugin:
    """What all plugins share.

    Attributes:
        name: The name in the policy; the name of the class unless set.
        args: The arguments from the policy, checked.
        reads: Further kinds of objects that it reads, see `Nodes.objects`; not for bind plugins.
        depends_on: What its verdict on a node, or its raw score of it, depends on. The gateway
            caches them by this. Not inherited, since a subclass may depend on more; not for bind
            plugins.
        pod_fields: Which fields of the pod's signature it reads, as JSON paths:
            ("spec.tolerations", "spec.containers[*].image"). Pods that differ elsewhere are equal
            for it. () is none, None all of them. Not inherited.
        managed_resources: Resources such as "example.com/gpu", if it concerns only pods of which a
            container or init container requests or limits one of these. If that holds for all
            plugins of a policy, kube-scheduler need not ask Moorage about other pods. () stands for
            all pods. Not inherited.
    """

    name: ClassVar[str] = ""
    reads: ClassVar[tuple[ObjectKind, ...]] = ()
    depends_on: ClassVar[Scope] = Scope.ANYTHING
    pod_fields: ClassVar[tuple[str, ...] | None] = None
    managed_resources: ClassVar[tuple[str, ...]] = ()
    args: Any
    __note = ""

    class Args(Arguments):
        """No arguments."""

    def __init__(self, args: Arguments | None = None) -> None:
        """Take *args*, an instance of `Args`, or the defaults."""
        self.args = self.Args() if args is None else args

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        if not isinstance(cls.reads, tuple) or not all(
            isinstance(k, ObjectKind) for k in cls.reads
        ):
            raise TypeError(
                f"{cls.__name__}.reads must be a tuple of ObjectKind, not {cls.reads!r}"
            )
        if "depends_on" not in cls.__dict__:
            cls.depends_on = Scope.ANYTHING
        if not isinstance(cls.depends_on, Scope):
            raise TypeError(f"{cls.__name__}.depends_on must be a Scope, not {cls.depends_on!r}")
        if cls.reads and cls.depends_on is Scope.NODE:
            raise TypeError(
                f"{cls.__name__} reads further objects, so it depends on more than Scope.NODE: "
                "declare Scope.MANIFESTS, or a wider one"
            )
        if "pod_fields" not in cls.__dict__:
            cls.pod_fields = None
        check_fields(cls.pod_fields, f"{cls.__name__}.pod_fields")
        if "managed_resources" not in cls.__dict__:
            cls.managed_resources = ()
        if not isinstance(cls.managed_resources, tuple) or not all(
            isinstance(name, str) and name for name in cls.managed_resources
        ):
            raise TypeError(
                f"{cls.__name__}.managed_resources must be a tuple of names such as "
                f"example.com/gpu, not {cls.managed_resources!r}"
            )

    async def start(self) -> None:
        """Begin background work, such as polling metrics; called once before the first cycle."""

    async def stop(self) -> None:
        """End background work; called once after the last cycle."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Look at *pod* before its nodes (PreFilter, PreScore); None goes on with all nodes."""
        return None

    def note(self, text: str) -> None:
        """Leave a note about this cycle, which the pod's decision shows beside the plugin.

        Numbers and names are welcome in it, unlike in reasons. It becomes one line of at most
        `MAX_NOTE_LENGTH` characters; the last note of a cycle counts. Bind plugins have none.
        """
        line = " ".join(text.split()).encode(errors="replace").decode()
        self.__note = line if len(line) <= MAX_NOTE_LENGTH else f"{line[: MAX_NOTE_LENGTH - 1]}…"

    @property
    def noted(self) -> str:
        """The note of the latest cycle; empty if there is none."""
        return self.__note


class FilterPlugin(Plugin):
    """Rules nodes out. Override `filter_node` or `filter`."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why *node* cannot run *pod*, or None if it can."""
        raise NotImplementedError(f"{self.name} has neither filter_node nor filter")

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Return a verdict for each of *nodes*, which passed all filters before this one.

        Other replicas may be asked about others: a verdict must not depend on which *nodes* are.
        """
        verdicts = nodes.verdicts()
        for index, node in enumerate(nodes):
            rejection = self.filter_node(pod, node)
            if rejection is not None:
                if not isinstance(rejection, Rejection):
                    raise WrongTypeError(self.filter_node, rejection, "Rejection or None")
                verdicts.reject_at(index, rejection)
        return verdicts

    def reserve(self, pod: Pod) -> bool:
        """Return whether *pod* has to claim its node now (Reserve).

        Say so where the verdicts on later pods depend on where this one goes: the bind comes after
        the next pods were filtered. The gateway then chooses the node in the same cycle, offers
        kube-scheduler no other, and counts the pod as on it from there on. If the claim is lost
        before the bind, this plugin is asked about the node again, and the bind fails if it rejects
        it. Not called if `prepare` skipped the pod, or if no node is left.
        """
        return False


class ScorePlugin(Plugin):
    """Ranks nodes. Override `score_node` or `score`.

    Attributes:
        normalization: How scores become 0..100, unless `normalize` is overridden.
    """

    normalization: ClassVar[Normalization] = Normalization.NONE

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not isinstance(cls.normalization, Normalization):
            raise TypeError(
                f"{cls.__name__}.normalization must be a Normalization, not {cls.normalization!r}"
            )

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return how good *node* is for *pod*: any finite number."""
        raise NotImplementedError(f"{self.name} has neither score_node nor score")

    def score(self, pod: Pod, nodes: Nodes) -> npt.ArrayLike:
        """Return a finite number for each of *nodes*.

        Other replicas may score others: compare nodes in `prepare` or `normalize`, which see all.
        """
        scores = np.empty(len(nodes))
        for index, node in enumerate(nodes):
            score = self.score_node(pod, node)
            if isinstance(score, bool) or not isinstance(score, int | float | np.number):
                raise WrongTypeError(self.score_node, score, "a number")
            scores[index] = score
        return scores

    def normalize(self, scores: Scores) -> npt.ArrayLike:
        """Map the scores of all nodes of the cycle onto 0..100, by default by `normalization`."""
        return self.normalization.apply(scores)


class BindPlugin(Plugin):
    """Acts before and after a pod is bound. Override `pre_bind`, `post_bind`, or both.

    Binds of several pods run at the same time: keep what belongs to one pod by its uid.

    Attributes:
        reads_pod: Whether it needs `binding.pod`, or should not be asked about pods that are bound
            already. False saves a request to the API server if no plugin of the profile needs it.
    """

    reads_pod: ClassVar[bool] = True

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Do what must be done before *binding* is written; return why it may not be, or None.

        Called again when kube-scheduler tries the pod again, maybe for another node.
        """
        return None

    async def post_bind(self, binding: Binding) -> None:
        """Do what is to be done once the pod is bound; that may be after it has started."""


class WrongAnswerError(Exception):
    """A plugin's method returned something that it may not; the message names the method's line."""

    def __init__(self, method: Callable[..., object], problem: str) -> None:
        code = inspect.unwrap(method).__code__
        super().__init__(f"{code.co_name} {problem} ({code.co_filename}:{code.co_firstlineno})")


class WrongTypeError(WrongAnswerError):
    """A plugin's method returned something else than it promises."""

    def __init__(self, method: Callable[..., object], value: object, expected: str) -> None:
        super().__init__(method, f"must return {expected}, not {type(value).__name__}")


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
    if issubclass(kind, FilterPlugin) and kind.reserve is not FilterPlugin.reserve:
        points.append("Reserve")
    if issubclass(kind, BindPlugin):
        points += ["PreBind"] if kind.pre_bind is not BindPlugin.pre_bind else []
        points += ["PostBind"] if kind.post_bind is not BindPlugin.post_bind else []
    return tuple(points)
