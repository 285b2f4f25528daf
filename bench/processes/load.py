"""Talks to the load, the Go program that calls extenders as kube-scheduler does."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from bench.processes.objects import Object, new_pod

Pods = Literal["equal", "numbered", "unlike"]
"""How pods differ from each other, apart from name and UID.

Equal ones do in nothing, as a Deployment's. Numbered ones have labels of their own, as those of a
StatefulSet or an indexed Job. Unlike ones also have a request and a toleration of their own, so
that no plugin that looks at either can have been asked the same before.
"""


class Contender(msgspec.Struct, frozen=True, rename="camel"):
    """An extender that is measured; its `pods` get `profile` as their schedulerName.

    The paths are those below `url`; without the second one, prioritize is not called.
    """

    name: str
    url: str
    profile: str = "moorage"
    pids: Sequence[int] = ()
    pods: Pods = "unlike"
    filter_path: str = "filter"
    prioritize_path: str = "prioritize"


class Job(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What to measure; the fields are explained in goextender/client/main.go."""

    api: str
    contenders: Sequence[Contender]
    nodes: int
    rounds: int
    warm_up: int = 10
    seconds: float = 0
    whole: bool = False
    changed: int = 0
    pause_ms: float = 0
    pod: Object = msgspec.field(default_factory=new_pod)
    seed: int = 1


class Call(msgspec.Struct, frozen=True):
    """One call: nanoseconds until the last byte of the answer, and bytes."""

    answered: int
    sent: int
    received: int


class Round(msgspec.Struct, frozen=True):
    """One pod's way through one contender.

    Attributes:
        feasible: Nodes that remained.
        processor: Nanoseconds of processor time that the contender's processes used.
        failure: Why there is nothing else, "" if all went well.
    """

    contender: str
    filter: Call
    prioritize: Call
    feasible: int
    processor: int
    failure: str = ""


class _Line(msgspec.Struct):
    progress: int = 0
    rounds: list[Round] = []
    error: str = ""


class LoadError(Exception):
    """A contender failed, so there is nothing to compare; the message names it and the cause."""


@dataclass(frozen=True, slots=True)
class Load:
    """The running program."""

    process: asyncio.subprocess.Process

    async def run(self, job: Job, progress: Callable[[int], None]) -> list[Round]:
        """Measure; call *progress* with the number of rounds done.

        Raises:
            LoadError: A call failed.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(job) + b"\n")
        async for text in self.process.stdout:
            line = msgspec.json.decode(text, type=_Line)
            if line.error:
                raise LoadError(line.error)
            if line.rounds:
                return line.rounds
            progress(line.progress)
        raise LoadError(f"the load ended with {await self.process.wait()}")
