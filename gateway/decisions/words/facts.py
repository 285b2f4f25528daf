"""What lists of decisions show and are searched by: outcome, node, and the plugins that decided."""

import sys

import msgspec

from gateway.decisions.records import Decision, NodeScoreRecord, Outcome


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
    plugins = list(map(sys.intern, _plugins(decision)))
    if len(plugins) > 1:
        plugins = list(dict.fromkeys(plugins))
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
    record = decision.bind or decision.bind_check or decision.claim
    return record.node if record is not None else ""


def _plugins(decision: Decision) -> list[str]:
    plugins: list[str] = []
    for phase in (decision.filter, decision.preempt, decision.score):
        if phase is not None:
            plugins += [each.plugin for each in phase.plugins if each.rejected or each.failure]
    if decision.claim is not None:
        plugins += decision.claim.plugins
    if decision.score is not None and len(decision.score.top) > 1:
        plugins += _largest(*decision.score.top[:2])
    return plugins


def _largest(best: NodeScoreRecord, second: NodeScoreRecord) -> list[str]:
    """Return the plugin to which the best node owes most of its lead over the next, if any."""
    plugin, most = "", 0.0
    others = {score.plugin: score.normalized for score in second.plugins}
    for score in best.plugins:
        part = (score.normalized - others.get(score.plugin, 0.0)) * score.weight
        if part > most:
            plugin, most = score.plugin, part
    return [plugin] if plugin else []
