"""What is fuzzed: everything that reads what others send."""

from tests.fuzz.targets.deltas import Deltas
from tests.fuzz.targets.edge import Bodies, Cycles
from tests.fuzz.targets.http import Http
from tests.fuzz.targets.journals import Journals
from tests.fuzz.targets.policy import Policies
from tests.fuzz.targets.selectors import Selectors
from tests.fuzz.targets.sessions import Sessions
from tests.fuzz.targets.target import Target
from tests.fuzz.targets.units import Durations, Quantities

TARGETS: dict[str, type[Target]] = {
    each.name: each
    for each in (
        *(Bodies, Cycles, Http, Policies, Quantities, Selectors, Durations, Deltas, Sessions),
        Journals,
    )
}
