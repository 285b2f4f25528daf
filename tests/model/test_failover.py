"""The model, for a moment; `make nightly` and `python -m tools.model` run it for longer."""

from hypothesis import settings

from tools.model.machine import Failover
from tools.model.search import settings_for

Failover.TestCase.settings = settings_for(2 * settings().max_examples)

TestFailover = Failover.TestCase
