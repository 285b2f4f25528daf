"""Each kind of fault, drawn from a random generator: when it happens, and to whom."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

SERVICES = ("filter", "scorer-1", "scorer-2", "binder")
GATEWAY = "gateway"
SCHEDULER = "kube-scheduler"
BINDER_IN_USE = "binder in use"
"""Whichever binder gets the binds when the fault begins."""

LINKS = (
    *(f"{GATEWAY}>{service}" for service in SERVICES),
    f"{SCHEDULER}>gateway",
    *(f"{client}>api" for client in (GATEWAY, "binder", SCHEDULER)),
)

CALLED_LINKS = [link for link in LINKS if link not in (f"{SCHEDULER}>api", f"{GATEWAY}>api")]
"""Without watches: a round is too short for one that a half-open connection has silenced."""

VERSIONS_SECONDS = 7.0


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


def kill_gateway(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """The binds that it leaves behind take longer than its restart."""
    yield Injection(at=0.0, fault="slow_bindings", amount=extent.slowest)
    at = rng.uniform(0.4, 0.6) * extent.seconds
    yield Injection(at=at, fault="kill", target=GATEWAY)
    # So that pods are tried again in another order, and other nodes are chosen.
    yield Injection(at=at, fault="kill", target=SCHEDULER)


def kill(target: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield slow_bindings(extent)
        for at in sorted(rng.uniform(0.3, extent.seconds) for _ in range(2)):
            yield Injection(at=at, fault="kill", target=target)

    return draw


def stop(target: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield slow_bindings(extent)
        at, seconds = rng.uniform(0.3, extent.seconds / 2), rng.uniform(0.5, extent.longest)
        yield Injection(at=at, fault="stop", target=target, seconds=seconds)

    return draw


def stop_binder_in_use(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """One of two binders stops; it goes on when the time of the binds that it has is over."""
    yield slow_bindings(extent)
    at = rng.uniform(0.3, extent.seconds / 2)
    yield Injection(at=at, fault="stop", target=BINDER_IN_USE, seconds=12.0)


def rollout(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    yield slow_bindings(extent)
    programs = (*SERVICES, GATEWAY, SCHEDULER)
    for target in rng.sample(programs, len(programs)):
        at = rng.uniform(0.2, extent.seconds)
        yield Injection(at=at, fault="terminate", target=target)


def cut_links(fault: str, links: Sequence[str]) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield slow_bindings(extent)
        for target in rng.sample(links, 2):
            at, seconds = rng.uniform(0.3, extent.seconds / 2), rng.uniform(0.5, extent.longest)
            yield Injection(at=at, fault=fault, target=target, seconds=seconds)

    return draw


def latency(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    for target in LINKS:
        amount = 0.05 if target.startswith(SCHEDULER) else round(rng.uniform(0.005, 0.03), 3)
        yield Injection(
            at=0.0, fault="latency", target=target, seconds=extent.seconds, amount=amount
        )


def slow_api(share: float) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        del rng
        yield Injection(at=0.0, fault="slow_bindings", amount=share * extent.slowest)

    return draw


def failing_api(fault: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        for _ in range(3):
            at = rng.uniform(0.0, extent.seconds * 0.8)
            yield Injection(at=at, fault=fault, amount=rng.choice((0.1, 0.3, 0.5)))

    return draw


def broken_watches(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    for step in range(int(extent.seconds / 0.4)):
        fault = rng.choice(("drop_watches", "expire_watches", "refuse_watches"))
        yield Injection(at=step * 0.4, fault=fault)


def lying_api(*lies: str) -> Draw:
    """Watches and lists of nodes and pods answer with 200 and what is not true."""

    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        share = extent.seconds / len(lies)
        for number, lie in enumerate(lies):
            at = number * share + rng.uniform(0.0, 0.2)
            yield Injection(at=at, fault="lie", target=lie, seconds=share - 0.2)

    return draw


def silent_watch(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    yield Injection(
        at=rng.uniform(0.0, 0.5),
        fault="hold_down",
        target="gateway>api",
        seconds=rng.uniform(1.0, extent.longest),
    )


def broken_log(fault: str) -> Draw:
    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        del rng
        yield Injection(at=0.3, fault=fault, target=GATEWAY, seconds=extent.seconds)

    return draw


def delayed_binds(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """What a gateway has sent arrives when it is long dead."""
    yield Injection(at=0.0, fault="slow_bindings", amount=0.2)
    for at in (rng.uniform(0.4, 0.6), rng.uniform(1.4, 1.6)):
        yield Injection(at=at, fault="freeze", target=f"{GATEWAY}>binder", seconds=3.0)
        yield Injection(at=at + 0.6, fault="kill", target=GATEWAY)


def two_versions(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """One replica goes over to another version of a plugin, and back."""
    yield Injection(at=0.0, fault="other_version", target="scorer-2", seconds=VERSIONS_SECONDS)
    at = rng.uniform(0.45, 0.55) * VERSIONS_SECONDS
    yield Injection(at=at, fault="stop", target="scorer-1", seconds=2.0)


def poison(*deeds: str) -> Draw:
    """Pods of a tenant that a plugin does not survive, or not in time; they are tried again."""

    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        for deed in deeds:
            for _ in range(2):
                yield Injection(
                    at=rng.uniform(0.0, extent.seconds / 2), fault="poison", target=deed
                )

    return draw


def simulate_storm(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """Many ask what would become of a pod with a heavy manifest, again and again."""
    del rng
    yield Injection(at=0.0, fault="simulate", target=GATEWAY, seconds=extent.seconds, amount=24)


def token_flood(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """Strangers show tokens that nobody knows at the admin port, again and again."""
    del rng
    yield Injection(at=0.0, fault="show_tokens", target=GATEWAY, seconds=extent.seconds, amount=24)


def shadows(*deeds: str) -> Draw:
    """The policy has a shadow whose plugin does something bad, one deed after another."""

    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        share = extent.seconds / len(deeds)
        for number, deed in enumerate(deeds):
            at = number * share + rng.uniform(0.0, 0.2)
            yield Injection(at=at, fault="shadow", target=deed, seconds=share - 0.3)

    return draw


def narrow(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """Every link passes on so little that a snapshot of the state takes a while."""
    for target in LINKS:
        amount = rng.choice((30_000, 60_000, 120_000))
        yield Injection(
            at=0.0, fault="narrow", target=target, seconds=extent.seconds, amount=amount
        )


def watch_silent_for_minutes(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """Nothing comes from the API server for longer than watches are silent by themselves."""
    seconds = rng.uniform(70.0, 100.0)
    yield Injection(at=extent.seconds / 2, fault="hold_down", target="gateway>api", seconds=seconds)


def lease_garbage(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """Somebody who may write Leases writes nonsense into the one of the gateways."""
    at = sorted(rng.uniform(0.2, extent.seconds) for _ in range(GARBAGE))
    for number, each in enumerate(at):
        yield Injection(at=each, fault="garbage_lease", amount=number)


GARBAGE = 3
"""Kinds of nonsense: a huge epoch, a huge duration of a foreign holder, no number at all."""


def slow_bindings(extent: Extent) -> Injection:
    return Injection(at=0.0, fault="slow_bindings", amount=0.4 * extent.slowest)


def on_leader(fault: str, seconds: float, *links: str) -> Draw:
    """Something happens to the gateway that decides, or to links of it."""

    def draw(rng: random.Random, extent: Extent) -> Iterator[Injection]:
        yield slow_bindings(extent)
        at = rng.uniform(0.3, extent.seconds / 2)
        for target in links or (LEADER,):
            yield Injection(at=at, fault=fault, target=target, seconds=seconds)

    return draw


LEADER = "leader"
"""Whichever gateway decides when the fault begins."""

ELECTED_GATEWAYS = ("gateway-1", "gateway-2")

LEASE_SECONDS = 3.0
"""The duration of the Lease; a leader that is cut off for longer has lost it."""


def clock_jumps(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """Wall clocks jump by an hour or more, and the leader dies after that."""
    yield slow_bindings(extent)
    for target in (*ELECTED_GATEWAYS, "binder"):
        for _ in range(2):
            amount = rng.choice((-1, 1)) * rng.uniform(3600, 90_000)
            at = rng.uniform(0.1, 0.6) * extent.seconds
            yield Injection(at=at, fault="jump_clock", target=target, amount=round(amount))
    yield Injection(at=0.7 * extent.seconds, fault="kill", target=LEADER)


def renewals(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """All certificates are replaced again and again, each time by another authority's."""
    for step in range(int(extent.seconds / 0.7)):
        at = 0.7 * step + rng.uniform(0.0, 0.2)
        yield Injection(at=at, fault="renew_certificates")


def bad_certificates(rng: random.Random, extent: Extent) -> Iterator[Injection]:
    """Processes are given certificates that they must not take, and called with such."""
    yield Injection(at=rng.uniform(0.2, 0.5), fault="spoil_certificates", seconds=extent.seconds)
    for at in sorted(rng.uniform(0.2, extent.seconds) for _ in range(2)):
        yield Injection(at=at, fault="intrude")
