"""A stand-in for kube-scheduler 1.37 as an extender sees it.

It runs against an API server over HTTP and calls extenders with the same bytes, in the same order
and with the same consequences as kube-scheduler. `moorage up`, `make demo` and the tests use it;
`tests/e2e` runs the real one.

In-tree filters and scores are those of Moorage's built-in plugins, with kube-scheduler's order and
weights. On purpose it differs in this: there are no volumes, resource claims, pod groups,
disruption budgets and no leader election; backoffs are not rounded to whole seconds; and victims
are deleted before the preemptor is queued again, not in the background.
"""

from sandbox.scheduler.scheduler import StandInScheduler, running

__all__ = ["StandInScheduler", "running"]
