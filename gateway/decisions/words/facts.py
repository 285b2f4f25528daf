"""What lists of decisions show and are searched by: outcome, node, and the plugins that decided."""

import sys
from collections.abc import Iterator

import msgspec

from gateway.decisions.records import Decision, Outcome, ScoreRecord
from gateway.decisions.words.comparing import differences


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of an attempt.

    Attributes:
        outcome: That.
        node: The node that the pod went to, was to be bound to, or has claimed; "" for none.
        plugins: The plugins that decided: they rejected nodes, failed, wanted the claim, or counted
            most for the best node over the next.
    """

    outcome: Outcome
    node: str
    plugins: tuple[str, ...]

    def at(self, place: str) -> "Facts":
        """Return the facts if the cluster shows the pod on the node *place*, "" for none."""
        if not place or self.outcome != "binding":
            return self
        return Facts(outcome="bound", node=place, plugins=self.plugins)


def facts(decision: Decision) -> Facts:
    """Return the facts of an attempt."""
    plugins = dict.fromkeys(sys.intern(plugin) for plugin in _plugins(decision))
    return Facts(outcome=_outcome(decision), node=_node(decision), plugins=tuple(plugins))


def runner_up(decision: Decision, node: str) -> str:
    """Return the best node other than *node*; "" if there is none, or it is not known."""
    top = decision.score.top if decision.score else []
    return next((each.node for each in top if each.node != node), "")


def _outcome(decision: Decision) -> Outcome:
    if decision.bind is not None:
        return "bind failed" if decision.bind.error else "bound"
    if decision.bind_check is not None and decision.bind_check.error:
        return "bind failed"
    if decision.error:
        return "failed"
    if decision.preempt is not None:
        return "preempting"
    if decision.filter is None:
        return "binding" if decision.score is not None else "deciding"
    return "binding" if decision.filter.feasible else "unschedulable"


def _node(decision: Decision) -> str:
    records = (decision.bind, decision.bind_check, decision.claim)
    return next((record.node for record in records if record is not None), "")


def _plugins(decision: Decision) -> Iterator[str]:
    for phase in (decision.filter, decision.preempt, decision.score):
        for plugin in phase.plugins if phase is not None else ():
            if plugin.rejected or plugin.failure:
                yield plugin.plugin
    if decision.claim is not None:
        yield from decision.claim.plugins
    if decision.score is not None:
        yield from _largest(decision.score)


def _largest(score: ScoreRecord) -> Iterator[str]:
    """Yield the plugin to which the best node owes most of its lead over the next."""
    if len(score.top) < 2:
        return
    parts = differences(score.top[0], score.top[1])
    plugin = max(parts, key=lambda name: parts[name], default="")
    if plugin and parts[plugin] > 0:
        yield plugin
