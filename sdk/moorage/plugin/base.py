"""What plugins of all kinds have."""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NoReturn

from moorage.models import ObjectKind, Pod
from moorage.plugin.arguments import Arguments, ArgumentsT_co, HasArgs, NoArguments
from moorage.plugin.clock import now
from moorage.plugin.cycle_state import CycleState
from moorage.plugin.definition import check_definition
from moorage.plugin.errors import refuse
from moorage.plugin.pod_fields import check_fields
from moorage.plugin.scope import Scope
from moorage.rules import SelectorError, check_kind
from moorage.snapshot import Nodes

MAX_NOTE_LENGTH = 300
"""How many characters of a plugin's note are kept."""

DEFAULT_TIME_BUDGET = 1.0
"""Seconds that a plugin may take at each extension point if neither it nor the policy sets them."""

MAX_TIME_BUDGET = 60.0
"""The longest time budget, in seconds."""

Work = Callable[[], Coroutine[Any, Any, None]]
"""What runs in the background: a coroutine function without parameters."""

BeginWork = Callable[[Callable[[], object], float | None], None]
"""What begins work in the background: until it returns, or every so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What `prepare` may return.

    Attributes:
        nodes: Go on with these nodes only; the others are rejected. None keeps all. Only filter
            plugins may narrow the nodes.
        skip: The plugin has no verdicts on, or scores for, this pod.
    """

    nodes: Nodes | None = None
    skip: bool = False


SKIP = Preparation(skip=True)
"""What `prepare` returns for pods that do not concern the plugin: it is asked about no node."""


class Plugin:
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
        time_budget: Seconds that it may take at each extension point, and at each step of its
            background work, unless the policy sets `timeBudget`: above 0, at most 60.
    """

    name: ClassVar[str] = ""
    reads: ClassVar[tuple[ObjectKind, ...]] = ()
    depends_on: ClassVar[Scope] = Scope.ANYTHING
    reads_placements: ClassVar[bool] = True
    pod_fields: ClassVar[tuple[str, ...] | None] = None
    managed_resources: ClassVar[tuple[str, ...]] = ()
    time_budget: ClassVar[float] = DEFAULT_TIME_BUDGET
    Args: ClassVar[type[Arguments]] = NoArguments
    __begin: BeginWork | None = None

    def __init__(self, args: Arguments | None = None) -> None:
        """Take *args*, an instance of `Args`, or the defaults."""
        self.__args = self.Args() if args is None else args
        self.__cycle_state = CycleState()

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        if "depends_on" not in cls.__dict__:
            cls.depends_on = Scope.ANYTHING
        if "reads_placements" not in cls.__dict__:
            cls.reads_placements = True
        if "pod_fields" not in cls.__dict__:
            cls.pod_fields = None
        if "managed_resources" not in cls.__dict__:
            cls.managed_resources = ()
        _check_declarations(cls)
        check_definition(cls, is_abstract=abstract)

    @property
    def args(self: HasArgs[ArgumentsT_co]) -> ArgumentsT_co:
        """The arguments from the policy, checked; of the type of the nested class `Args`."""
        args: ArgumentsT_co = self.__args  # type: ignore[attr-defined]
        return args

    @property
    def cycle_state(self) -> CycleState:
        """What this plugin keeps in this cycle for the bind of the same attempt (CycleState).

        For filter and score plugins: `self.cycle_state.write(key, value, node=node)`. Bind plugins
        read it as `binding.cycle_state[key]`. Each cycle begins without any.
        """
        return self.__cycle_state

    @property
    def log(self) -> logging.Logger:
        """The log of the service, under the name of the plugin; `print` goes there as well."""
        return logging.getLogger(self.name)

    def now(self) -> datetime:
        """Return the time in UTC; tests set it by `moorage.testing.time_is`."""
        return now()

    async def start(self) -> None:
        """Get ready, and begin `background` work; called once before the first cycle."""

    async def stop(self) -> None:
        """Undo `start`; called once after the last cycle. Background work has ended by itself."""

    def background(self, work: Work) -> None:
        """Run *work* from now until the plugin stops, such as a loop that waits for a server.

        If it raises, the log has the traceback, `/readyz` and metrics show the failure, and it is
        called again after a wait that grows from 1 to 60 seconds with each failure in a row. A row
        ends when it has run for longer than the wait before, and for more than a second. If it
        returns, it is not called again. Each of its steps, from `await` to `await`, has the
        plugin's time budget, since cycles wait for it. When the plugin stops it is cancelled.

        Raises:
            RuntimeError: The plugin does not run: nobody has called `start` as services do.
        """
        self.__begin_work(work, None)

    def poll(self, read: Callable[[], object], interval: float) -> None:
        """Call *read* now and every *interval* seconds, counted from its return, until it stops.

        It may be async. If it raises, that shows as in `background`, and it is called again after a
        wait that grows with each failure in a row from 1 second to the interval, at most 60. The
        next call that returns ends the row.

        Raises:
            RuntimeError: The plugin does not run: nobody has called `start` as services do.
            ValueError: The interval is not above 0.
        """
        self.__begin_work(read, interval)

    def __begin_work(self, work: Callable[[], object], interval: float | None) -> None:
        if self.__begin is None:
            raise RuntimeError(
                f"{self.name} does not run, so nothing can run in its background: call this in "
                "`start`; in a test, `run_filter` and `run_score` of moorage.testing call `start`, "
                "or enter `running(plugin)`"
            )
        self.__begin(work, interval)

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not yet stopped."""
        return self.__begin is not None

    def begin_background_by(self, begin: BeginWork | None) -> None:
        """Have *begin* called for all background work; None if the plugin does not run."""
        self.__begin = begin

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Look at *pod* before its nodes (PreFilter, PreScore); None goes on with all nodes."""
        return None

    def note(self, text: str) -> None:
        """Leave a note about this cycle, which the pod's decision shows beside the plugin.

        Numbers and names are welcome in it, unlike in reasons. It becomes one line of at most
        `MAX_NOTE_LENGTH` characters; the last note of a cycle counts. Bind plugins have none.
        """
        line = " ".join(text.split()).encode(errors="replace").decode()
        self.__cycle_state.note = (
            line if len(line) <= MAX_NOTE_LENGTH else f"{line[: MAX_NOTE_LENGTH - 1]}…"
        )

    @property
    def latest_note(self) -> str:
        """The note of the latest cycle; empty if there is none."""
        return self.__cycle_state.note


def _check_declarations(cls: type[Plugin]) -> None:
    if not isinstance(cls.reads, tuple) or not all(isinstance(k, ObjectKind) for k in cls.reads):
        _refuse(cls, "reads", f"must be a tuple of ObjectKind, not {cls.reads!r}")
    for kind in cls.reads:
        try:
            check_kind(kind)
        except SelectorError as error:
            _refuse(cls, "reads", f"has {kind.plural} with what is no selector: {error}")
    if not isinstance(cls.depends_on, Scope):
        _refuse(cls, "depends_on", f"must be a Scope, not {cls.depends_on!r}")
    if cls.reads and cls.depends_on is Scope.NODE:
        refuse(
            f"{cls.__name__} reads further objects, so it depends on more than Scope.NODE: declare "
            "Scope.MANIFESTS, or a wider one",
            statement=r"\s*depends_on\b",
        )
    placements: object = cls.reads_placements
    if not isinstance(placements, bool):
        _refuse(cls, "reads_placements", f"must be True or False, not {placements!r}")
    managed: object = cls.managed_resources
    if not isinstance(managed, tuple) or not all(isinstance(m, str) and m for m in managed):
        problem = f"must be a tuple of names such as example.com/gpu, not {managed!r}"
        _refuse(cls, "managed_resources", problem)
    budget: object = cls.time_budget
    is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not (is_number and 0 < cls.time_budget <= MAX_TIME_BUDGET):
        problem = f"must be seconds above 0, at most {MAX_TIME_BUDGET:g}, not {budget!r}"
        _refuse(cls, "time_budget", problem)
    try:
        check_fields(cls.pod_fields, f"{cls.__name__}.pod_fields")
    except TypeError as error:
        refuse(str(error), statement=r"\s*pod_fields\b")


def _refuse(cls: type[Plugin], name: str, problem: str) -> NoReturn:
    """Refuse a class attribute."""
    refuse(f"{cls.__name__}.{name} {problem}", statement=rf"\s*{name}\b")
