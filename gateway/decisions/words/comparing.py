"""Says in sentences what a decision amounts to: what made a node win, and who else decided.

For people, so it is worked out when somebody asks, from what the record keeps.
"""

from collections.abc import Iterator, Mapping

from gateway.decisions.records import Decision, FilterRecord, NodeScoreRecord, ScoreRecord

FINEST_SCALE = 1000
"""The largest `scoreScale`."""

SHOWN = 3
"""Plugins that a sentence names, those that differ most."""


def differences(one: NodeScoreRecord, other: NodeScoreRecord) -> Mapping[str, float]:
    """Return what each plugin adds to the lead of *one* over *other*; their sum is the lead."""
    weights = sum(score.weight for score in one.plugins)
    others = {score.plugin: score.normalized for score in other.plugins}
    return {
        score.plugin: (score.normalized - others.get(score.plugin, 0.0)) * score.weight / weights
        for score in one.plugins
    }


def explained(decision: Decision, place: str = "") -> list[str]:
    """Return what made the decision, in sentences; nothing that the record does not prove.

    *place* is the pod's node as the cluster shows it, for pods that Moorage does not bind.
    """
    sentences: list[str] = list(_failures(decision))
    if decision.filter is not None and decision.filter.feasible <= 1:  # no score decided
        sentences += _rejected(decision.filter)
    if decision.claim is not None:
        plugins = ", ".join(decision.claim.plugins)
        sentences.append(
            f"{decision.claim.node} was claimed for {plugins}, so no other was offered"
        )
    if decision.score is not None:
        sentences += _scored(decision, decision.score, place)
    return sentences


def _failures(decision: Decision) -> Iterator[str]:
    """Yield what failed, whether the attempt went on without it or not."""
    for phase in (decision.filter, decision.score):
        for plugin in phase.plugins if phase else ():
            if plugin.failure:
                yield f"{plugin.plugin} failed: {plugin.failure}"
    if decision.score_error:
        yield f"no scores: {decision.score_error}"
    if decision.error:
        yield f"the attempt failed: {decision.error}"
    if decision.bind_check and decision.bind_check.error:
        yield f"the bind was refused: {decision.bind_check.error}"


def _rejected(record: FilterRecord) -> Iterator[str]:
    for plugin in record.plugins:
        if plugin.rejected:
            reasons = ", ".join(f"{each.nodes} {each.reason}" for each in plugin.reasons)
            yield f"{plugin.plugin} rejected {plugin.rejected} of {record.nodes} nodes: {reasons}"


def _scored(decision: Decision, score: ScoreRecord, place: str) -> Iterator[str]:
    if len(score.top) > 1:
        yield lead(score.top[0], score.top[1])
    if score.tied:
        yield tie(score)
    # Without a claim, kube-scheduler has seen all scores and chosen.
    bound = bound_node(decision, place) if not decision.claim else ""
    if score.top and bound and bound != score.top[0].node:
        yield outvoted(score, bound)


def bound_node(decision: Decision, place: str) -> str:
    """Return the node that the attempt led to, "" if it is not known."""
    return decision.bind.node if decision.bind else place


def lead(best: NodeScoreRecord, second: NodeScoreRecord) -> str:
    """Return by how much Moorage prefers one node to another, and which plugins make it so."""
    difference = best.total - second.total
    parts = _largest(differences(best, second))
    if not difference:
        return f"Moorage has the same total for {best.node} and {second.node}: {best.total:.4g}"
    return (
        f"Moorage prefers {best.node} to {second.node}, {best.total:.4g} to {second.total:.4g}"
        f"{f': {parts}' if parts else ''}"
    )


def _largest(parts: Mapping[str, float]) -> str:
    ranked = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return ", ".join(f"{plugin} {part:+.3g}" for plugin, part in ranked[:SHOWN] if part)


def tie(score: ScoreRecord) -> str:
    """Return that rounding made nodes equal to the best one, and what a finer scale would change.

    kube-scheduler's own points are not known here, so nor is which node would win with it.
    """
    others = f"{score.tied} other{'s' if score.tied > 1 else ''}"
    return (
        f"{score.top[0].node if score.top else 'the best node'} is tied with {others} after "
        f"rounding to {score.scale} steps, so kube-scheduler saw them alike{_finer(score)}"
    )


def _finer(score: ScoreRecord) -> str:
    if len(score.top) < 2 or score.top[0].total == score.top[1].total:
        return ""
    best, second, scale = score.top[0].total, score.top[1].total, score.scale * 10
    ahead = f": a lead of {best - second:.2g} of 100"
    steps = _steps(best, scale) - _steps(second, scale)
    if scale > FINEST_SCALE or not steps:
        return f"{ahead}, so spread the scores in `normalize`"
    return f"{ahead}, at scoreScale {scale} worth {steps} x 10 x the extender's weight"


def _steps(total: float, scale: int) -> int:
    """Return the whole number that is sent for a total."""
    return int(total * scale / 100 + 0.5)


def outvoted(score: ScoreRecord, bound: str) -> str:
    """Return why the pod is on *bound*, which is not Moorage's one best node."""
    best = score.top[0]
    chosen = next((each for each in score.top if each.node == bound), None)
    if chosen is None:
        return (
            f"kube-scheduler's own scores outvoted Moorage's: it chose {bound}, which is not among "
            f"Moorage's best {len(score.top)}, over {best.node}, {best.total:.4g}"
        )
    if chosen.total == best.total:
        return f"kube-scheduler chose {bound} of the nodes with the best total"
    whole = [_steps(each.total, score.scale) for each in (best, chosen)]
    if whole[0] == whole[1]:
        return (
            f"kube-scheduler chose {bound}, {chosen.total:.4g}, by its own scores or by lot: after "
            f"rounding it is as good as {best.node}, {best.total:.4g}"
        )
    return (
        f"kube-scheduler's own scores outvoted Moorage's: it chose {bound}, {chosen.total:.4g}, "
        f"over {best.node}, {best.total:.4g}, a lead of {whole[0] - whole[1]} x 10 x the "
        "extender's weight"
    )
