"""All checks: a module for each verb, and for recorded traffic, bodies and connections."""

from cli.conformance.checks.binds import bind_checks
from cli.conformance.checks.bodies import body_checks
from cli.conformance.checks.check import Check, Probe
from cli.conformance.checks.connections import connection_checks
from cli.conformance.checks.filters import filter_checks
from cli.conformance.checks.scores import prioritize_checks
from cli.conformance.checks.traffic import recorded_checks
from cli.conformance.checks.victims import preempt_checks

__all__ = ["Check", "Probe", "all_checks"]


def all_checks() -> tuple[Check, ...]:
    """Return all checks, in the order of the report."""
    return (
        *recorded_checks(),
        *filter_checks(),
        *prioritize_checks(),
        *preempt_checks(),
        *bind_checks(),
        *body_checks(),
        *connection_checks(),
    )
