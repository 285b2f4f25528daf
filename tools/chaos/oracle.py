"""Reads audit logs and kube-scheduler's log, and judges what a round has come to."""

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

import grpc
import grpc.aio

from moorage.v1 import replica_pb2 as pb
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub
from tools.chaos.load import CROWD, FIT_CROWDED, RANKED, RUN, Wanted, pool_of
from tools.chaos.plugins.rules.rules import EXCLUSIVE, LIMITED, MOST_LIMITED
from tools.waiting import NewLines

INJECTED = "sandbox.moorage.io/fault"

Act = Literal["create", "delete", "bind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write about a pod.

    Attributes:
        act: What was asked for.
        name: The pod.
        node: Where it was to be bound.
        code: The answer.
        injected: A fault refused it before anything was done.
        client: The user agent.
        at: When it was done, in seconds since 1970.
    """

    act: Act
    name: str
    node: str
    code: int
    injected: bool
    client: str
    at: float

    @property
    def done(self) -> bool:
        """Whether it changed something."""
        return self.code < 300


class AuditReader:
    """Reads what was added to an audit log since the last time."""

    def __init__(self, path: Path) -> None:
        self._lines = NewLines(path)

    def read(self) -> list[Write]:
        """Return the new writes about pods, in the order in which they were done."""
        writes = [write for line in self._lines.read() for write in _write(line)]
        return sorted(writes, key=lambda write: write.at)


def _write(line: bytes) -> Iterator[Write]:
    event = json.loads(line)
    target = event.get("objectRef") or {}
    if event["stage"] != "ResponseComplete" or target.get("resource") not in ("pods", "bindings"):
        return
    binding = target.get("subresource") == "binding" or target["resource"] == "bindings"
    if target.get("subresource") and not binding:
        return
    act: Act
    if binding:
        act = "bind"
    elif event["verb"] in ("create", "delete"):
        act = event["verb"]
    else:
        return
    yield Write(
        act=act,
        name=target.get("name", ""),
        node=(event.get("requestObject") or {}).get("target", {}).get("name", ""),
        code=event["responseStatus"]["code"],
        injected=INJECTED in (event.get("annotations") or {}),
        client=event.get("userAgent", ""),
        at=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
    )


_FAILED = re.compile(
    rb'Post \\*"https?://[^"]*/(?P<verb>[a-z]+)\\*": (?P<cause>[^"\\]*)'
    rb"|failed (?P<refused>[a-z]+) with extender at URL [^ ]*, code (?P<code>\d+)"
)


class FailedCalls:
    """Reads what was added to kube-scheduler's log since the last time."""

    def __init__(self, path: Path) -> None:
        self._lines = NewLines(path)

    def read(self) -> list[str]:
        """Return the calls that got no answer, or one that is none, such as "bind: EOF"."""
        found = (_FAILED.search(line) for line in self._lines.read())
        return [_text(match) for match in found if match]


def _text(match: re.Match[bytes]) -> str:
    parts = (match["verb"] or match["refused"], match["cause"] or b"code " + (match["code"] or b""))
    return ": ".join(part.decode(errors="replace").strip() for part in parts)


Places = Mapping[str, str]
"""The node of each pod, by namespace and name."""


async def picture(channel: grpc.aio.Channel, nodes: Sequence[str]) -> Places:
    """Return which pods the gateway has shown to a filter replica, and where."""
    request = pb.GetStateRequest(node_names=nodes)
    answer = await ReplicaServiceStub(channel).GetState(request, timeout=5)
    return {pod: node.name for node in answer.nodes for pod in node.pods}


def difference(seen: Places, real: Places) -> str:
    """Return in one sentence how two pictures differ, nothing if they do not."""
    ghosts = [name for name in seen if name not in real]
    missing = [name for name in real if name not in seen]
    moved = [name for name in real if seen.get(name, real[name]) != real[name]]
    if not (ghosts or missing or moved):
        return ""
    return f"{len(ghosts)} pods too many, {len(missing)} missing, {len(moved)} on another node"


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What was found in the audit log of a round.

    Attributes:
        bound: Successful Bindings.
        posts: Bindings that were asked for, without those that a fault refused.
        twice: Successful Bindings of a pod that was bound already.
        evicted: Bound pods that were deleted to make room for more important ones.
        broken: The rules that were broken, one sentence each.
        pause: The longest time without a Binding while a pod waited for one, in seconds.
        waits: How long each pod waited for its Binding, without those that wait for room, in
            seconds.
    """

    bound: int = 0
    posts: int = 0
    twice: int = 0
    evicted: int = 0
    broken: list[str] = field(default_factory=list)
    pause: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def p99(self) -> float:
        """How long all pods but one in a hundred waited at most, in seconds."""
        return sorted(self.waits)[int(0.99 * len(self.waits))] if self.waits else 0.0

    @property
    def posts_per_bind(self) -> float:
        """How often the API server was asked for each pod that was bound."""
        return self.posts / self.bound if self.bound else 0.0


def judge(writes: Iterable[Write], wanted: Sequence[Wanted], *, room: bool = True) -> Verdict:
    """Replay the writes of a round, which begins without pods.

    Without *room* nodes may be overfilled: that is kube-scheduler's own rule, and one that has been
    killed forgets the binds that were under way.
    """
    replay = _Replay(wanted, room=room)
    for write in writes:
        replay.step(write)
    return replay.verdict


class _Replay:
    def __init__(self, wanted: Sequence[Wanted], *, room: bool) -> None:
        self._room = room
        self.verdict = Verdict()
        self._to_come: dict[str, deque[Wanted]] = {}
        for each in wanted:
            self._to_come.setdefault(each.name, deque()).append(each)
        self._pods: dict[str, Wanted] = {}
        self._places: dict[str, str] = {}
        self._waiting: dict[str, float] = {}
        self._last_bind = 0.0

    def step(self, write: Write) -> None:
        if write.act == "bind":
            self.verdict.posts += not write.injected
        if not write.done:
            return
        if write.act == "create":
            self._create(write)
        elif write.act == "delete":
            self._delete(write)
        else:
            self._bind(write)

    def _delete(self, write: Write) -> None:
        pod = self._pods.pop(write.name, None)
        if pod is None and (stored := self._to_come.get(write.name)):
            stored.popleft()  # its create was answered with an error, and done
        place = self._places.pop(write.name, None)
        self._waiting.pop(write.name, None)
        self.verdict.evicted += bool(place and pod and pod.kind == "evictable")

    def _create(self, write: Write) -> None:
        if coming := self._to_come.get(write.name):
            self._pods[write.name] = coming.popleft()
            if self._pods[write.name].kind not in CROWD:  # these wait for others to leave
                self._waiting[write.name] = write.at

    def _bind(self, write: Write) -> None:
        pod = self._pods.get(write.name)
        if pod is None:
            return  # not of this campaign
        self.verdict.bound += 1
        began = max(self._last_bind, min(self._waiting.values(), default=write.at))
        self.verdict.pause = max(self.verdict.pause, write.at - began)
        self._last_bind = write.at
        if (since := self._waiting.pop(write.name, None)) is not None:
            self.verdict.waits.append(write.at - since)
        if write.name in self._places:
            self.verdict.twice += 1
        others = {name: self._pods[name] for name in self._places if name != write.name}
        self.verdict.broken += _broken(pod, write.node, others, self._places)
        if self._room:
            self.verdict.broken += _overfilled(pod, write.node, others, self._places)
        self._places[write.name] = write.node


def _broken(
    pod: Wanted, node: str, others: Mapping[str, Wanted], places: Mapping[str, str]
) -> Iterator[str]:
    where = f"{pod.name} on {node}"
    here = [other for name, other in others.items() if places[name] == node]
    if pool_of(node) != pod.pool:
        yield f"{where}: it belongs into the pool {pod.pool}"
    if pod.kind == "ranked" and node not in RANKED:
        yield f"{where}: no version of the plugin finds this node the best"
    if run := pod.labels.get(RUN):
        own = Counter(
            places[name] for name, other in others.items() if other.labels.get(RUN) == run
        )
        if own and node not in own:
            yield f"{where}: run {run} is on {', '.join(own)}"
        if foreign := {other.labels[RUN] for other in here if RUN in other.labels} - {run}:
            yield f"{where}: the node has run {', '.join(foreign)}"
    if EXCLUSIVE in pod.labels and any(EXCLUSIVE in other.labels for other in here):
        yield f"{where}: the node has an exclusive pod"
    if LIMITED in pod.labels:
        count = sum(LIMITED in other.labels for other in here)
        if count >= MOST_LIMITED:
            yield f"{where}: the node has {count} limited pods"


def _overfilled(
    pod: Wanted, node: str, others: Mapping[str, Wanted], places: Mapping[str, str]
) -> Iterator[str]:
    here = sum(places[name] == node for name in others)
    if pod.kind in CROWD and here >= FIT_CROWDED:
        yield f"{pod.name} on {node}: the node has room for {FIT_CROWDED} pods, and has {here}"
