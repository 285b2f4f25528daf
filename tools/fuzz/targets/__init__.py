"""What is fuzzed: everything that reads what others send."""

from tools.fuzz.targets.deltas import Deltas
from tools.fuzz.targets.edge import Bodies, Cycles
from tools.fuzz.targets.http import Http
from tools.fuzz.targets.journals import Journals
from tools.fuzz.targets.policy import Policies
from tools.fuzz.targets.selectors import Selectors
from tools.fuzz.targets.sessions import Sessions
from tools.fuzz.targets.target import Target
from tools.fuzz.targets.units import Durations, Quantities

TARGETS: dict[str, type[Target]] = {
    each.name: each
    for each in (
        *(Bodies, Cycles, Http, Policies, Quantities, Selectors, Durations, Deltas, Sessions),
        Journals,
    )
}
