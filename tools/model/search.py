"""Runs the model, and measures how long it takes to find a broken rule."""

import logging
import time
from dataclasses import dataclass

import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tools.model.machine import Failover
from tools.model.rules import BrokenError

MACHINES = 250
"""In CI."""

LENGTH = 40
"""Steps of one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rule that does not hold.

    Attributes:
        rule: Its name.
        problem: What breaks it.
        steps: After how many.
        seconds: After how long.
    """

    rule: str
    problem: str
    steps: int
    seconds: float


def settings_for(machines: int, *phases: Phase) -> settings:
    """Return settings with which each run is the same."""
    return settings(
        max_examples=machines,
        stateful_step_count=LENGTH,
        phases=phases or (Phase.generate, Phase.shrink),
        derandomize=True,
        print_blob=False,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def search(machines: int) -> Found | None:
    """Run so many machines, until one breaks a rule; it is not made smaller."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    Failover.steps, start = 0, time.monotonic()
    try:
        run_state_machine_as_test(Failover, settings=settings_for(machines, Phase.generate))
    except BrokenError as error:
        problem = str(error).removeprefix(f"{error.name}: ")
        seconds = time.monotonic() - start
        return Found(rule=error.name, problem=problem, steps=Failover.found, seconds=seconds)
    return None
