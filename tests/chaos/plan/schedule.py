"""Which faults happen when: drawn from a seed, so that a campaign can be repeated."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.plan.load import Wanted, pods, ranked

SERVICES = ("filter", "scorer-1", "scorer-2", "binder")
GATEWAY = "gateway"
SCHEDULER = "kube-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One fault.

    Attributes:
        at: Seconds after the begin of the round.
        fault: What happens; a method of `inject.Injector`.
        target: The program or link that it happens to.
        seconds: How long it lasts, where that applies.
        amount: How much of it, where that applies.
    """

    at: float
    fault: str
    target: str = ""
    seconds: float = 0.0
    amount: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.at:.1f} s {self.fault}", self.target]
        parts += [f"for {self.seconds:.1f} s"] if self.seconds else []
        parts += [f"({self.amount:g})"] if self.amount else []
        return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A load with faults of one row of the table."""

    number: int
    row: str
    wanted: Sequence[Wanted] = field(repr=False)
    injections: Sequence[Injection]

    @property
    def limits_posts(self) -> bool:
        """Whether nothing happens that cuts Bindings off, so that few must be sent again."""
        return self.row != SLOWER and all(each.fault in API_FAULTS for each in self.injections)


API_FAULTS = frozenset({"slow_bindings", "refuse_bindings", "lose_answers", "latency"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much of everything there is in a round.

    Attributes:
        seconds: How long pods are created.
        rate: Pods a second.
        longest: The longest stop or partition, in seconds.
        slowest: The longest time that the API server takes for a Binding, in seconds.
    """

    seconds: float = 3.0
    rate: float = 13.0
    longest: float = 3.0
    slowest: float = 6.0


Draw = Callable[[random.Random, Extent], Iterator[Injection]]


def _kill_gateway(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """The binds that it leaves behind take longer than its restart."""
    yield Injection(at=0.0, fault="slow_bindings", amount=extent.slowest)
    at = rng.uniform(0.4, 0.6) * extent.seconds
    yield Injection(at=at, fault="kill", target=GATEWAY)
    # So that pods are tried again in another order, and other nodes are chosen.
    yield Injection(at=at, fault="kill", target=SCHEDULER)


def _kill(target: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield _slow_bindings(extent)
        for at in sorted(rng.uniform(0.3, extent.seconds) for _ in range(2)):
            yield Injection(at=at, fault="kill", target=target)

    return draw


def _stop(target: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield _slow_bindings(extent)
        at, seconds = rng.uniform(0.3, extent.seconds / 2), rng.uniform(0.5, extent.longest)
        yield Injection(at=at, fault="stop", target=target, seconds=seconds)

    return draw


def _rollout(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    yield _slow_bindings(extent)
    programs = (*SERVICES, GATEWAY, SCHEDULER)
    for target in rng.sample(programs, len(programs)):
        at = rng.uniform(0.2, extent.seconds)
        yield Injection(at=at, fault="terminate", target=target)


def _link(fault: str, links: Sequence[str]) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield _slow_bindings(extent)
        for target in rng.sample(links, 2):
            at, seconds = rng.uniform(0.3, extent.seconds / 2), rng.uniform(0.5, extent.longest)
            yield Injection(at=at, fault=fault, target=target, seconds=seconds)

    return draw


def _latency(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    for target in LINKS:
        amount = 0.05 if target.startswith(SCHEDULER) else round(rng.uniform(0.005, 0.03), 3)
        yield Injection(
            at=0.0, fault="latency", target=target, seconds=extent.seconds, amount=amount
        )


def _slow_api(share: float) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        del rng
        yield Injection(at=0.0, fault="slow_bindings", amount=share * extent.slowest)

    return draw


def _api(fault: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        for _ in range(3):
            at = rng.uniform(0.0, extent.seconds * 0.8)
            yield Injection(at=at, fault=fault, amount=rng.choice((0.1, 0.3, 0.5)))

    return draw


def _watches(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    for step in range(int(extent.seconds / 0.4)):
        fault = rng.choice(("drop_watches", "expire_watches", "refuse_watches"))
        yield Injection(at=step * 0.4, fault=fault)


def _stale(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    yield Injection(
        at=rng.uniform(0.0, 0.5),
        fault="hold_down",
        target="gateway>api",
        seconds=rng.uniform(1.0, extent.longest),
    )


def _log(fault: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        del rng
        yield Injection(at=0.3, fault=fault, target=GATEWAY, seconds=extent.seconds)

    return draw


def _delayed(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """What a gateway has sent arrives when it is long dead."""
    yield Injection(at=0.0, fault="slow_bindings", amount=0.2)
    for at in (rng.uniform(0.4, 0.6), rng.uniform(1.4, 1.6)):
        yield Injection(at=at, fault="freeze", target=f"{GATEWAY}>binder", seconds=3.0)
        yield Injection(at=at + 0.6, fault="kill", target=GATEWAY)


def _versions(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """One replica goes over to another version of a plugin, and back."""
    yield Injection(at=0.0, fault="other_version", target="scorer-2", seconds=VERSIONS_SECONDS)
    at = rng.uniform(0.45, 0.55) * VERSIONS_SECONDS
    yield Injection(at=at, fault="stop", target="scorer-1", seconds=2.0)


def _slow_bindings(extent: Extent) -> Injection:
    return Injection(at=0.0, fault="slow_bindings", amount=0.4 * extent.slowest)


LINKS = (
    *(f"{GATEWAY}>{service}" for service in SERVICES),
    f"{SCHEDULER}>gateway",
    *(f"{client}>api" for client in (GATEWAY, "binder", SCHEDULER)),
)

OUR_LINKS = [link for link in LINKS if not link.startswith(f"{SCHEDULER}>api")]
"""Without the watches of the stand-in for kube-scheduler, which never notices a silent one."""

VERSIONS_SECONDS = 7.0
VERSIONS = "two versions of a plugin"
SLOWER = "API server slower than the timeout"

ONE_GATEWAY: Mapping[str, Draw] = {
    "no fault": lambda rng, extent: iter(()),
    "kill -9 gateway, slow Bindings": _kill_gateway,
    "kill -9 binder, slow Bindings": _kill("binder"),
    "kill -9 filter": _kill("filter"),
    "kill -9 scorer": _kill("scorer-1"),
    "kill -9 kube-scheduler": _kill(SCHEDULER),
    "SIGSTOP gateway": _stop(GATEWAY),
    "SIGSTOP binder": _stop("binder"),
    "SIGSTOP filter": _stop("filter"),
    "SIGSTOP scorer": _stop("scorer-1"),
    "SIGTERM of each, one after another": _rollout,
    "binds of a dead gateway arrive late": _delayed,
    VERSIONS: _versions,
    "partition": _link("hold_both", LINKS),
    "partition one way, requests": _link("hold_up", LINKS),
    "partition one way, answers": _link("hold_down", LINKS),
    "connections reset": _link("cut", LINKS),
    "half-open connections": _link("half_open", OUR_LINKS),
    "latency of every link": _latency,
    "API server nearly as slow as the timeout": _slow_api(1.0),
    SLOWER: _slow_api(1.6),  # a third of the outcomes is unknown
    "API server answers 429, 500, 503": _api("refuse_bindings"),
    "Bindings done, answers lost": _api("lose_answers"),
    "watches cut, expired, refused": _watches,
    "watch silent": _stale,
    "log disk full": _log("full_log"),
    "log pipe unread": _log("unread_log"),
}
"""The rows of the table with one gateway."""


def _leader(fault: str, seconds: float, *links: str) -> Draw:
    """Something happens to the gateway that decides, or to links of it."""

    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield _slow_bindings(extent)
        at = rng.uniform(0.3, extent.seconds / 2)
        for target in links or (LEADER,):
            yield Injection(at=at, fault=fault, target=target, seconds=seconds)

    return draw


LEADER = "leader"
"""Whichever gateway decides when the fault begins."""

LEASE_SECONDS = 3.0
"""The duration of the Lease; a leader that is cut off for longer has lost it."""

IN_TURN: Mapping[str, Draw] = {
    "two gateways called in turn": lambda rng, extent: iter([_slow_bindings(extent)]),
}
"""The rows with two gateways without an election."""

ELECTED: Mapping[str, Draw] = {
    "leader: kill -9": _leader("kill", 0.0),
    "leader: SIGTERM": _leader("terminate", 0.0),
    "leader: SIGSTOP, returns as a zombie": _leader("stop", 2 * LEASE_SECONDS),
    "leader: cut off from the API server": _leader("hold_both", 2 * LEASE_SECONDS, "leader>api"),
    "leader: requests to the API server held": _leader("hold_up", 2 * LEASE_SECONDS, "leader>api"),
    "leader: answers of the API server held": _leader("hold_down", 2 * LEASE_SECONDS, "leader>api"),
    "leader: cut off from the binder": _leader("hold_both", LEASE_SECONDS, "leader>binder"),
    "leader: cut off from API server and binder": _leader(
        "hold_both", 2 * LEASE_SECONDS, "leader>api", "leader>binder"
    ),
}
"""The rows with two gateways of which one is elected."""


REAL: Mapping[str, Draw] = {
    "no fault": ONE_GATEWAY["no fault"],
    "kill -9 gateway, slow Bindings": _kill_gateway,
    "kill -9 binder, slow Bindings": _kill("binder"),
    "kill -9 kube-scheduler": _kill(SCHEDULER),
    "kill -9 kube-apiserver": _kill("kube-apiserver"),
    "kill -9 etcd": _kill("etcd"),
    "SIGSTOP gateway": _stop(GATEWAY),
    "SIGTERM of each, one after another": _rollout,
    "partition": _link("hold_both", LINKS),
    "partition one way, answers": _link("hold_down", LINKS),
    "half-open connections": _link("half_open", LINKS),
    "binds of a dead gateway arrive late": _delayed,
}
"""The rows on a real control plane."""


def rounds(seed: int, extent: Extent, rows: Mapping[str, Draw], first: int = 0) -> Iterator[Round]:
    """Yield a round of each row, in the order of the table."""
    for offset, (row, draw) in enumerate(rows.items()):
        number = first + offset
        # Each round has a generator of its own, so that it can be repeated alone.
        rng = random.Random(f"{seed}/{number}/{row}")
        wanted = pods(f"r{number}", round(extent.rate * extent.seconds), extent.seconds, rng)
        if row == VERSIONS:
            wanted += ranked(f"r{number}", VERSIONS_SECONDS, rng)
            wanted.sort(key=lambda each: each.at)
        injections = sorted(draw(rng, extent), key=lambda each: each.at)
        yield Round(number=number, row=row, wanted=wanted, injections=injections)
