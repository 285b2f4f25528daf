"""What plugins of all kinds call: their arguments, log, clock, notes, kept values and background.

Authors override the methods of `moorage.plugin.hooks`, which stand on these classes.
"""

import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, ClassVar

from moorage.plugin.arguments import Arguments, ArgumentsT_co, HasArgs, NoArguments
from moorage.plugin.clock import now
from moorage.plugin.cycle_state import ANNOTATION, CycleState, annotations_at
from moorage.plugin.definition import check_definition
from moorage.snapshot import Node

MAX_NOTE_LENGTH = 300
"""How many characters of a plugin's note are kept."""

Work = Callable[[], Coroutine[Any, Any, None]]
"""What runs in the background: a coroutine function without parameters."""

BeginWork = Callable[[Callable[[], object], float | None], None]
"""What begins work in the background: until it returns, or every so many seconds."""


class PluginBase:
    """What every plugin can call."""

    name: ClassVar[str] = ""
    Args: ClassVar[type[Arguments]] = NoArguments
    _forms: ClassVar[
        tuple[str, ...]
    ] = ()  # a plugin overrides exactly one; the last calls the first
    _enough: ClassVar[tuple[str, ...]] = ()  # or at least one of these
    __begin: BeginWork | None = None

    def __init__(self, args: Arguments | None = None) -> None:
        """Take *args*, an instance of `Args`, or the defaults."""
        self.__args = self.Args() if args is None else args
        self.__cycle_state = CycleState()

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
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

        It may be async. A plain function runs in the event loop, where cycles wait for it: one that
        asks a server is called by `await asyncio.to_thread(...)`. If it raises, that shows as in
        `background`, and it is called again after a wait that grows with each failure in a row from
        1 second to the interval, at most 60. The next call that returns ends the row.

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


class FilterBase(PluginBase, abstract=True):
    """What filter plugins can call beside that."""

    __report: Callable[[str, str, str], None] | None = None

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
