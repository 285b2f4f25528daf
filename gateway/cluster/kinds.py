"""Follows the additional kinds of objects that plugins read, for as long as someone needs them.

The policy needs those that its plugins read; a session those that its replica reads, which may
still have an older policy.
"""

import asyncio
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import structlog

from gateway.cluster.endings import Restart
from gateway.cluster.metrics import WatchMetrics
from gateway.cluster.objects import (
    ObjectContent,
    ObjectSink,
    ObjectTable,
    decode_object,
    decode_pod_content,
)
from gateway.cluster.reflector import Reflector
from gateway.cluster.wire import Resource
from moorage.models import ObjectKind
from moorage_host.kube import KubeClient

Readers = Mapping[ObjectKind, Sequence[str]]
"""Kinds with the plugins that read them."""

_log = structlog.get_logger()


class AdditionalKinds:
    """The watches of the additional kinds of objects that plugins read."""

    def __init__(
        self,
        client: KubeClient,
        table: ObjectTable,
        metrics: WatchMetrics,
        *,
        limit: int,
    ) -> None:
        """Put objects of up to *limit* bytes into *table*."""
        self._client = client
        self._table = table
        self._metrics = metrics
        self._limit = limit
        self._needs: dict[Hashable, Readers] = {}
        self._wanted: dict[Hashable, Readers] = {}
        self._watches: dict[ObjectKind, _Watch] = {}
        self._group: asyncio.TaskGroup | None = None

    def start(self, group: asyncio.TaskGroup) -> None:
        """Follow what is needed in tasks of *group*, from here on."""
        self._group = group
        self._follow()

    def stop(self) -> None:
        """Follow nothing any more."""
        self._group = None
        for watch in self._watches.values():
            watch.task.cancel()

    def need(self, who: Hashable, readers: Readers) -> None:
        """Replace what someone needs."""
        _replace(self._needs, who, readers)
        self._follow()

    def want(self, who: Hashable, readers: Readers) -> None:
        """Replace what someone may need soon; it is followed, but its absence is no problem."""
        _replace(self._wanted, who, readers)
        self._follow()

    async def synced(self, kinds: Collection[ObjectKind]) -> None:
        """Wait until objects of these kinds, which someone must need, have been read."""
        for kind in kinds:
            await self._watches[kind].reflector.synced.wait()

    def missing(self, kinds: Iterable[ObjectKind]) -> str:
        """Return why objects of these kinds, which someone must need or want, are not read."""
        problems = ((kind, self._watches[kind].problem(float("inf"))) for kind in kinds)
        return "; ".join(f"{kind}: {problem}" for kind, problem in problems if problem)

    def ages(self) -> dict[str, float]:
        """Return for each kind for how many seconds the API server has been silent."""
        return {str(kind): watch.reflector.age() for kind, watch in self._watches.items()}

    def notes(self) -> Iterator[str]:
        """Yield what keeps kinds from being followed, or was sent about them that is not true."""
        needed = _kinds(self._needs)
        notes = (self._watches[kind].reflector.note() for kind in self._watches if kind in needed)
        yield from filter(None, notes)

    def problems(self, longest_silence: float) -> Iterator[str]:
        """Yield which kinds are not read, or are stale, who needs them, and what to do."""
        needed = _kinds(self._needs)
        for kind, watch in self._watches.items():
            problem = watch.problem(longest_silence) if kind in needed else ""
            if problem:
                yield f"{kind}, read by {', '.join(self._readers(kind))}: {problem}"

    def _readers(self, kind: ObjectKind) -> list[str]:
        needs = (*self._needs.values(), *self._wanted.values())
        return sorted({name for need in needs for name in need.get(kind, ())})

    def _follow(self) -> None:
        if self._group is None:
            return
        needed = _kinds(self._needs) | _kinds(self._wanted)
        for kind in self._watches.keys() - needed:
            _log.info("No plugin reads a kind any more", kind=str(kind))
            self._close(self._watches.pop(kind))
        for kind in sorted(needed - self._watches.keys()):
            _log.info(
                "Plugins read an additional kind", kind=str(kind), plugins=self._readers(kind)
            )
            self._watches[kind] = self._open(kind, self._group)

    def _open(self, kind: ObjectKind, group: asyncio.TaskGroup) -> "_Watch":
        is_pods = (kind.group, kind.plural) == ("", "pods")
        resource = Resource(
            path=kind.path,
            key="uid",
            decode=decode_pod_content if is_pods else decode_object,
            query=kind.query,
            optional=kind.optional,
        )
        name, metrics = str(kind), self._metrics
        sink = ObjectSink(
            self._table, kind, limit=self._limit, refused=lambda: metrics.refused(name).inc()
        )

        def restarted(reason: Restart) -> None:
            metrics.restarts(name, reason).inc()
            if reason is Restart.REFUSED:
                self._explain_refusal(kind)

        reflector = Reflector(
            self._client,
            resource,
            put=sink.put,
            drop=sink.drop,
            received=partial(metrics.events, name),
            restarted=restarted,
        )
        return _Watch(kind, reflector, group.create_task(reflector.run()))

    def _close(self, watch: "_Watch") -> None:
        watch.task.cancel()
        self._table.close(watch.kind)

    def _explain_refusal(self, kind: ObjectKind) -> None:
        plugins = self._readers(kind)
        _log.error(
            "What plugins read is refused", kind=str(kind), plugins=plugins, advice=advice(kind)
        )


def _replace(all_: dict[Hashable, Readers], who: Hashable, readers: Readers) -> None:
    all_.pop(who, None)
    if readers:
        all_[who] = readers


def _kinds(needs: Mapping[Hashable, Readers]) -> set[ObjectKind]:
    return {kind for readers in needs.values() for kind in readers}


@dataclass(frozen=True, slots=True)
class _Watch:
    kind: ObjectKind
    reflector: Reflector[ObjectContent]
    task: asyncio.Task[NoReturn]

    def problem(self, longest_silence: float) -> str:
        """Return why these objects are not known, or are stale; empty if neither."""
        cause = self.reflector.problem
        if not self.reflector.synced.is_set():
            return f"not read yet: {cause}; {advice(self.kind)}" if cause else "not read yet"
        age = self.reflector.age()
        if age <= longest_silence:
            return ""
        return f"the API server is silent for {age:.0f} s" + (f": {cause}" if cause else "")


def advice(kind: ObjectKind) -> str:
    """Return what the gateway needs to follow a kind."""
    group = kind.group or '""'
    where = f" in the namespace {kind.namespace}, where a Role will do" if kind.namespace else ""
    return (
        f"the gateway needs the verbs list and watch for {kind.plural} in the API group {group}"
        f"{where}, and the API server must serve them as {kind.api_version}"
    )
