"""Filters in steps, for a person who must not keep gateways waiting."""

from moorage_host.rpc.sessions.by_hand import Steps, joined
from services.filter.engine import FilterRun, joined_verdicts, run_filters


async def filter_in_steps(steps: Steps[FilterRun]) -> FilterRun:
    """Filter some nodes in each step, as replicas do that get a shard each."""
    parts = [await steps.run(run_filters, part) for part in steps.parts()]
    if len(parts) == 1:
        return parts[0]
    return joined_verdicts(parts, joined([part.plugins for part in parts]))
