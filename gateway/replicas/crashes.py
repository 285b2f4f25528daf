"""About which pods replicas have crashed, and for how long plugins are not called for these.

A plugin can end its process: by a segfault, `os._exit`, or memory. kube-scheduler tries the pod
again and again, so one such pod would end replicas for ever. But a replica also ends because of an
operator, its node, or its memory limit, whichever pod it works on. So the first crash about a pod
refuses nobody. From the second on the pod is refused, for a time that doubles with each crash. A
plugin that several pods are refused for is suspended: for their namespace, or for everybody if they
are of several.

Only what is certain counts. A broken session alone is no crash: it is one once another process
answers at the address, or the address is gone. The new process says what the former one was doing
(`FormerProcess`); if it cannot, a pod is suspected only if nothing else was under way there.
"""

import asyncio
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from moorage.execution.overruns import Owner
from moorage.v1 import types_pb2 as pb

log = structlog.get_logger()

FIRST_WAIT: Final = 30.0
"""Seconds for which a pod is refused after its second crash; they double with each one."""

LONGEST_WAIT: Final = 960.0
"""The longest such time."""

FORGET_SECONDS: Final = 3600.0
"""After which a pod's crashes are forgotten."""

SEVERAL: Final = 3
"""Refused pods of a namespace, or namespaces with one, for which a plugin is suspended."""

SUSPENSION_SECONDS: Final = 600.0
"""How long a plugin is suspended, from the last crash on; the pods have crashed within it, too."""

KNOWN_SECONDS: Final = 2.0
"""How long a pod waits after the loss of its replica for the news why, before another gets it."""

MOST_PODS: Final = 1000
"""Pods that are kept; the one whose last crash is the longest ago is forgotten first."""

MOST_SHOWN: Final = 10
"""Refused pods that `problems` names, those with the latest crashes."""

MOST_LOST: Final = 100
"""Lost replicas that are kept, in the same way."""

LOST_AGAIN: Final = "a replica was lost again while it worked on this pod"
"""The answer about a pod that has ended a replica before: at once, since other pods wait for it.

So it is while nobody knows why two were lost, but not for longer than `FIRST_WAIT`.
"""

NOBODY: Final[Owner] = ("", "")
"""Whose work that of a shadow is."""

Work = tuple[Owner, float]
"""A pod that a replica was asked about, and when, in seconds of `loop.time()`."""


@dataclass(slots=True)
class Suspect:
    """A pod about which replicas crashed.

    Attributes:
        count: The crashes.
        at: When the last one was known.
        lost: When its replica was lost.
        version: The version of the plugins that ran.
        plugin: The plugin that ran at last, "" if that is not known.
        how: How the process ended, "" if that is not known.
    """

    count: int
    at: float
    lost: float
    version: str
    plugin: str
    how: str

    @property
    def wait(self) -> float:
        """For how many seconds the pod is refused, from the last crash on."""
        return 0.0 if self.count < 2 else min(FIRST_WAIT * 2 ** (self.count - 2), LONGEST_WAIT)


@dataclass(slots=True, kw_only=True)
class _LostReplica:
    """A replica whose session broke, and what was under way there; `known` is set once it is."""

    place: str
    version: str
    work: Sequence[Work]
    at: float
    known: asyncio.Event = field(default_factory=asyncio.Event)


class CrashSuspects:
    """The pods about which replicas of one kind crashed.

    Attributes:
        pods: Those pods, the one with the latest crash last. While there are none, nobody is
            refused.
        lost_replicas: Those of which it is not known why they were lost, by their names.
    """

    def __init__(self, service: str, clock: Callable[[], float]) -> None:
        """Keep the pods of replicas of *service*; the *clock* is `loop.time`."""
        self.pods: OrderedDict[Owner, Suspect] = OrderedDict()
        self._service = service
        self._clock = clock
        self.lost_replicas: OrderedDict[str, _LostReplica] = OrderedDict()

    def lost(self, place: str, replica: str, version: str, work: Sequence[Work]) -> None:
        """Note that the session with a replica broke while this *work* was under way."""
        if work:
            loss = _LostReplica(place=place, version=version, work=work, at=self._clock())
            self.lost_replicas[replica] = loss
            if len(self.lost_replicas) > MOST_LOST:
                self.lost_replicas.popitem(last=False)[1].known.set()

    async def doubt(self, owner: Owner, deadline: float) -> str:
        """Return why no replica gets a pod now that replicas were lost about; "" if one may.

        One may after a first loss, once it is known why it came, or `KNOWN_SECONDS` after it, but
        not after a second one whose news are missing. This waits for them until the *deadline* at
        the latest, in seconds of `loop.time()`. What was under way at once is lost at once.
        """
        count, since = 0, -math.inf
        for loss in list(self.lost_replicas.values()):
            sent = dict(loss.work).get(owner)
            if sent is None or self._clock() > loss.at + FIRST_WAIT:
                continue
            pod = self.pods.get(owner)
            if pod is not None and pod.version == loss.version and sent > pod.lost:
                while_ = f"plugin {pod.plugin} ran for it" if pod.plugin else "it worked on it"
                return f"{LOST_AGAIN}; one ended{_by(pod.how)} before while {while_}"
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(loss.at + KNOWN_SECONDS, deadline)):
                    await loss.known.wait()
            if not loss.known.is_set() and sent > since:
                count, since = count + 1, loss.at
        return "" if count < 2 else f"{LOST_AGAIN}; it is not known yet why"

    def found(self, place: str, replica: str, former: pb.FormerProcess) -> None:
        """Note which process answers at an address, and what it says of the one before it."""
        for lost, loss in list(self.lost_replicas.items()):
            if lost == replica or loss.place == place or lost == former.replica:
                del self.lost_replicas[lost]
                if lost != replica:
                    self._crashed(loss, former if lost == former.replica else None)
                loss.known.set()

    def gone(self, place: str) -> None:
        """Note that no process answers at an address any more."""
        self.found(place, "", pb.FormerProcess())

    def refusals(self, owner: Owner, version: str) -> Mapping[str, str]:
        """Return which plugins are not called for a pod now, and why; all if "" is among them.

        Replicas with another *version* of the plugins may be better.
        """
        now, found = self._clock(), dict[str, str]()
        while self.pods and now - next(iter(self.pods.values())).at > FORGET_SECONDS:
            self.pods.popitem(last=False)
        for plugin, namespace, why in self._suspended(now, version):
            if namespace in (None, owner[0]):
                found[plugin] = why
        pod = self.pods.get(owner)
        if pod is not None and pod.version == version and now - pod.at < pod.wait:
            found[pod.plugin] = (
                f"a replica of {self._service} ended{_by(pod.how)} while "
                f"{'this plugin ran for' if pod.plugin else 'it worked on'} this pod, "
                f"{pod.count} times; tried again after {_in_words(pod.wait)}"
            )
        return found

    def problems(self) -> Iterator[str]:
        """Yield which pods are refused, and which plugins are suspended."""
        now = self._clock()
        refused = (
            (who, pod) for who, pod in reversed(self.pods.items()) if now - pod.at < pod.wait
        )
        for owner, pod in itertools.islice(refused, MOST_SHOWN):
            what = f"plugin {pod.plugin} ran for" if pod.plugin else "it worked on"
            yield (
                f"a replica of {self._service} ended{_by(pod.how)} while {what} pod "
                f"{'/'.join(owner)}, {pod.count} times"
            )
        for version in {pod.version for pod in self.pods.values()}:
            for plugin, namespace, why in self._suspended(now, version):
                whom = f" in namespace {namespace}" if namespace else ""
                yield f"plugin {plugin} is {why}{whom}"

    def _suspended(self, now: float, version: str) -> Iterator[tuple[str, str | None, str]]:
        """Yield plugins that are suspended, for which namespace (None for all), and why."""
        crashed: dict[str, dict[str, list[Suspect]]] = {}
        for (namespace, _), pod in self.pods.items():
            lately = now - pod.at < SUSPENSION_SECONDS and pod.version == version
            if pod.plugin and pod.wait and lately:
                crashed.setdefault(pod.plugin, {}).setdefault(namespace, []).append(pod)
        span = _in_words(SUSPENSION_SECONDS)
        for plugin, namespaces in crashed.items():
            why = f"suspended for {span}: replicas of {self._service} ended while it ran for"
            if len(namespaces) >= SEVERAL:
                yield plugin, None, f"{why} pods of {len(namespaces)} namespaces"
                continue
            for namespace, pods in namespaces.items():
                if len(pods) >= SEVERAL:
                    yield plugin, namespace, f"{why} {len(pods)} pods of this namespace"

    def _crashed(self, loss: _LostReplica, former: pb.FormerProcess | None) -> None:
        """Count a crash for the pod that the replica worked on, if it is certain which."""
        work, plugin, how = loss.work, "", ""
        if former is not None:
            plugin, how = former.plugin, former.end
            work = [each for each in work if each[0] == (former.namespace, former.pod)]
        owners = {owner for owner, _ in work}
        if len(owners) != 1 or NOBODY in owners:
            return
        owner, sent = work[0]
        before, now = self.pods.pop(owner, None), self._clock()
        count = 1
        if before is not None and before.version == loss.version:
            count = before.count + (sent > before.lost)  # replicas that had it at once count once
        self.pods[owner] = Suspect(count, now, loss.at, loss.version, plugin, how)
        if len(self.pods) > MOST_PODS:
            self.pods.popitem(last=False)
        log.error(
            "A replica has crashed",
            service=self._service,
            replica=loss.place,
            namespace=owner[0],
            pod=owner[1],
            plugin=plugin,
            how=how,
            crashes=count,
        )


def _by(how: str) -> str:
    return f" ({how})" if how else ""


def _in_words(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:g} min"
