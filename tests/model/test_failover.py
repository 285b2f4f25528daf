"""The model in CI; `python -m tests.model` runs it for longer."""

from tests.model.machine import Failover
from tests.model.search import MACHINES, settings_for

Failover.TestCase.settings = settings_for(MACHINES)

TestFailover = Failover.TestCase
