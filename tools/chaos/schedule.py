"""Which faults happen when: drawn from a seed, so that a campaign can be repeated."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tools.chaos import faults
from tools.chaos.faults import (
    CALLED_LINKS,
    GATEWAY,
    LEASE_SECONDS,
    LINKS,
    SCHEDULER,
    VERSIONS_SECONDS,
    Draw,
    Extent,
    Injection,
)
from tools.chaos.load import Wanted, pods, ranked

VERSIONS = "two versions of a plugin"
SLOWER = "API server slower than the timeout"


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

    @property
    def is_of_tenants(self) -> bool:
        """Whether what happens is what a tenant can do: others must not be much slower for it."""
        return bool(OF_TENANTS.match(self.row))

    @property
    def limits_waits(self) -> bool:
        """Whether others must not be much slower: they wait while an only filter starts again."""
        return self.is_of_tenants and self.row != ENDS_ONLY_FILTER

    @property
    def may_pay(self) -> int:
        """How many innocent pods may fail an attempt: that which an only filter works on."""
        return 0 if self.row in TWO_FILTERS else 1

    @property
    def answers_all(self) -> bool:
        """Whether not one call of kube-scheduler may fail."""
        return self.row.startswith(QUIET) or self.row in ANSWERED or self.row in TWO_FILTERS


QUIET = "no fault"
"""How the name of the row begins that others of its layout are compared with."""

OF_TENANTS = re.compile("poison|24 callers|shadows")

ENDS_ONLY_FILTER = "poison pods: segfault, exit"

STOPPED_BINDER = "SIGSTOP binder, two binders"

ANSWERED = frozenset({"certificates replaced", "certificates expired or wrong", STOPPED_BINDER})
"""Rows in which every call is answered: nothing that takes them ends without notice."""

API_FAULTS = frozenset({"slow_bindings", "refuse_bindings", "lose_answers", "latency"})


ONE_GATEWAY: Mapping[str, Draw] = {
    "no fault": lambda rng, extent: iter(()),
    "kill -9 gateway, slow Bindings": faults.kill_gateway,
    "kill -9 binder, slow Bindings": faults.kill("binder"),
    "kill -9 filter": faults.kill("filter"),
    "kill -9 scorer": faults.kill("scorer-1"),
    "kill -9 kube-scheduler": faults.kill(SCHEDULER),
    "SIGSTOP gateway": faults.stop(GATEWAY),
    "SIGSTOP binder": faults.stop("binder"),
    "SIGSTOP filter": faults.stop("filter"),
    "SIGSTOP scorer": faults.stop("scorer-1"),
    "SIGTERM of each, one after another": faults.rollout,
    "binds of a dead gateway arrive late": faults.delayed_binds,
    "poison pods: endless loop, regular expression": faults.poison("loop", "regex"),
    ENDS_ONLY_FILTER: faults.poison("segfault", "exit"),
    "24 callers of /simulate, 2 MB pods": faults.simulate_storm,
    "shadows: exception, endless loop, exit": faults.shadows("raise", "loop", "exit"),
    VERSIONS: faults.two_versions,
    "partition": faults.cut_links("hold_both", LINKS),
    "partition one way, requests": faults.cut_links("hold_up", LINKS),
    "partition one way, answers": faults.cut_links("hold_down", LINKS),
    "connections reset": faults.cut_links("cut", LINKS),
    "half-open connections": faults.cut_links("half_open", CALLED_LINKS),
    "latency of every link": faults.latency,
    "narrow bandwidth of every link": faults.narrow,
    "API server nearly as slow as the timeout": faults.slow_api(1.0),
    SLOWER: faults.slow_api(1.6),  # a third of the outcomes is unknown
    "API server answers 409, 429, 500, 503": faults.failing_api("refuse_bindings"),
    "Bindings done, answers lost": faults.failing_api("lose_answers"),
    "watches cut, expired, refused": faults.broken_watches,
    "API server lies: truncated, HTML, empty, not UTF-8": faults.lying_api(
        "truncated", "html", "empty", "garbled"
    ),
    "API server lies: twice, out of order, unknown, lower": faults.lying_api(
        "twice", "out-of-order", "unknown", "backwards"
    ),
    "API server lies: gzip, split, silent, drip": faults.lying_api(
        "gzip", "split", "silent", "drip"
    ),
    "410 in a loop": faults.lying_api("410"),
    "watch silent": faults.silent_watch,
    "watch silent for 70 to 100 s": faults.watch_silent_for_minutes,
    "log disk full": faults.broken_log("full_log"),
    "log pipe unread": faults.broken_log("unread_log"),
}
"""The rows of the table with one gateway."""


TWO_FILTERS: Mapping[str, Draw] = {
    "no fault, two filters": lambda rng, extent: iter(()),
    "poison pods, two filters: segfault, exit": faults.poison("segfault", "exit"),
    "poison pods, two filters: endless threads": faults.poison("thread"),
}
"""The rows with one gateway and two filters, of which a plugin may end one."""

TWO_BINDERS: Mapping[str, Draw] = {STOPPED_BINDER: faults.stop_binder_in_use}
"""The rows with one gateway and two binders."""

CERTIFICATES: Mapping[str, Draw] = {
    "certificates replaced": faults.renewals,
    "certificates expired or wrong": faults.bad_certificates,
    "no fault, certificates": lambda rng, extent: iter(()),
    "24 callers with unknown bearer tokens": faults.token_flood,
}
"""The rows with one gateway and TLS everywhere."""

IN_TURN: Mapping[str, Draw] = {
    "two gateways called in turn": lambda rng, extent: iter([faults.slow_bindings(extent)]),
}
"""The rows with two gateways without an election."""

ELECTED: Mapping[str, Draw] = {
    "leader: kill -9": faults.on_leader("kill", 0.0),
    "leader: SIGTERM": faults.on_leader("terminate", 0.0),
    "leader: SIGSTOP, returns as a zombie": faults.on_leader("stop", 2 * LEASE_SECONDS),
    "leader: cut off from the API server": faults.on_leader(
        "hold_both", 2 * LEASE_SECONDS, "leader>api"
    ),
    "leader: requests to the API server held": faults.on_leader(
        "hold_up", 2 * LEASE_SECONDS, "leader>api"
    ),
    "leader: answers of the API server held": faults.on_leader(
        "hold_down", 2 * LEASE_SECONDS, "leader>api"
    ),
    "leader: cut off from the binder": faults.on_leader(
        "hold_both", LEASE_SECONDS, "leader>binder"
    ),
    "leader: cut off from API server and binder": faults.on_leader(
        "hold_both", 2 * LEASE_SECONDS, "leader>api", "leader>binder"
    ),
    "leader: nonsense in the Lease": faults.lease_garbage,
}
"""The rows with two gateways of which one is elected."""


CLOCKS: Mapping[str, Draw] = {
    "leader: wall clocks jump by hours, kill -9": faults.clock_jumps,
}
"""The rows with two gateways, one elected, whose wall clocks are set by the campaign."""


REAL: Mapping[str, Draw] = {
    "no fault": ONE_GATEWAY["no fault"],
    "kill -9 gateway, slow Bindings": faults.kill_gateway,
    "kill -9 binder, slow Bindings": faults.kill("binder"),
    "kill -9 kube-scheduler": faults.kill(SCHEDULER),
    "kill -9 kube-apiserver": faults.kill("kube-apiserver"),
    "kill -9 etcd": faults.kill("etcd"),
    "SIGSTOP gateway": faults.stop(GATEWAY),
    "SIGTERM of each, one after another": faults.rollout,
    "24 callers of /simulate, 2 MB pods": faults.simulate_storm,
    "shadows: exception, endless loop, exit": faults.shadows("raise", "loop", "exit"),
    "narrow bandwidth of every link": faults.narrow,
    "partition": faults.cut_links("hold_both", LINKS),
    "partition one way, answers": faults.cut_links("hold_down", LINKS),
    "half-open connections": faults.cut_links("half_open", CALLED_LINKS),
    "binds of a dead gateway arrive late": faults.delayed_binds,
}
"""The rows on a real control plane."""


ONLY_FULL = frozenset(
    {
        "partition one way, requests",
        "SIGSTOP filter",
        "SIGSTOP scorer",
        "kill -9 filter",
        "kill -9 kube-scheduler",
        "partition one way, answers",
        "leader: cut off from the API server",
        "API server slower than the timeout",
        "leader: requests to the API server held",
        "leader: cut off from the binder",
        "leader: cut off from API server and binder",
        "watch silent for 70 to 100 s",
    }
)
"""Rows that are left out of the short form: others have faults of the same kind."""


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
