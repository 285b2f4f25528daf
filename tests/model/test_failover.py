"""The model in CI; `python -m tools.model` runs it for longer."""

from tools.model.machine import Failover
from tools.model.search import MACHINES, settings_for

Failover.TestCase.settings = settings_for(MACHINES)

TestFailover = Failover.TestCase
