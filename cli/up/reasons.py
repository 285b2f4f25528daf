"""Explains in one line why a pod is where it is: what in-tree plugins decided, and what Moorage.

kube-scheduler's stand-in knows the points of the best nodes; the gateway knows which of Moorage's
plugins they came from. A line has only what these two recorded.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cli.config.extender import POINTS, extender_weight
from cli.up.following import Outcome, PodState

SHOWN = 3
"""How many plugins of each side are shown, those that differ most."""

PREEMPTED = "preempted for a more important pod"
"""The reason for the end of a pod that kube-scheduler evicted."""

FINEST_SCALE = 1000
"""The largest `scoreScale`."""

Decision = Mapping[str, Any]
Parts = Mapping[str, float]


def why(pod: PodState, scheduler: Decision | None, gateway: Decision | None) -> str:
    """Return the reason for a pod's place, or for its having none.

    Args:
        pod: How far it is.
        scheduler: The stand-in's newest decision, if it has one.
        gateway: The newest attempt that the gateway keeps, if any.
    """
    known = scheduler if scheduler and scheduler["uid"] == pod.uid else None
    asked = gateway if gateway and gateway.get("uid", pod.uid) == pod.uid else {}
    if pod.outcome is Outcome.DELETED:
        return PREEMPTED if pod.preempted else "by a client or by what made it"
    if not pod.node:
        return _pending(pod, known, asked)
    if known is None:
        return "bound without kube-scheduler, or it has forgotten the decision"
    if known["node"] != pod.node:
        return f"kube-scheduler's newest decision is not this one ({known['node'] or 'no node'})"
    return "; ".join(_bound(pod.node, known, asked))


# ---- bound pods


def _bound(node: str, scheduler: Decision, gateway: Decision) -> Iterator[str]:
    claim = gateway.get("claim") or {}
    if claim.get("node") == node:
        yield from _claimed(claim, gateway)
    elif scheduler["nominated"]:
        yield "the node that was nominated for it, so no other was tried"
    elif scheduler["scores"]:
        yield from _scored(scheduler, gateway)
        if rejections := ", ".join(_rejections(scheduler, gateway)):
            yield rejections
    elif scheduler["nodes"] == 1:
        yield "the only node"
    else:
        rejections = ", ".join(_rejections(scheduler, gateway))
        yield ": ".join(["the only feasible node", *([rejections] if rejections else [])])
    yield from _failures(gateway)


def _claimed(claim: Decision, gateway: Decision) -> Iterator[str]:
    feasible = (gateway.get("filter") or {}).get("feasible", 0)
    of = f", one of {feasible} feasible nodes" if feasible > 1 else ", the only feasible node"
    yield f"claimed for {', '.join(claim['plugins'])}{of}"
    top: list[Decision] = (gateway.get("score") or {}).get("top") or []
    if len(top) > 1 and top[0]["node"] == claim["node"] and top[0]["total"] > top[1]["total"]:
        lead = {name: round(part, 1) for name, part in _parts(top[0], top[1]).items()}
        yield f"Moorage prefers it to {top[1]['node']}{_in_brackets(lead)}"


def _scored(scheduler: Decision, gateway: Decision) -> Iterator[str]:
    scores = scheduler["scores"]
    chosen, rival = scores["chosen"], scores["preferred"] or scores["runnerUp"]
    score = gateway.get("score") or {}
    rounding = list(_rounding(scheduler, score))
    ahead = _points(chosen) - _points(rival)
    sides = ", ".join(_sides(chosen, rival, score))
    if scores["preferred"] and ahead:
        yield f"outvotes Moorage, which prefers {rival['node']}: {sides}"
    elif scores["preferred"]:
        yield f"as many points as {rival['node']}, which Moorage prefers: {sides}; taken at random"
    elif scores["equals"]:
        others = rival["node"] if scores["equals"] == 1 else f"{scores['equals']} others"
        lot = "" if chosen["extenders"] is None else ", taken at random"
        yield f"as many points as {others}{lot}"
    else:
        yield f"beats {rival['node']} by {ahead}: {sides}"
    yield from rounding
    if chosen["extenders"] is None:
        yield from _no_scores(scheduler, gateway)
    elif not rounding and chosen["extenders"] == rival["extenders"]:
        yield "Moorage finds both alike"


def _no_scores(scheduler: Decision, gateway: Decision) -> Iterator[str]:
    """Yield why Moorage gave no scores; nothing for a profile without score plugins."""
    if not scheduler["offered"] and not gateway:
        yield "Moorage was not asked"
    elif not gateway or gateway.get("score") or gateway.get("scoreError"):
        yield "Moorage gave no scores"
    for plugin in (gateway.get("score") or {}).get("plugins") or ():
        if plugin.get("skipped") and plugin.get("note"):
            yield f"{plugin['plugin']} skipped the pod: {plugin['note']}"


def _rounding(scheduler: Decision, score: Decision) -> Iterator[str]:
    """Yield what rounding hid: nodes with different totals that kube-scheduler saw alike."""
    top, tied, scale = score.get("top") or (), score.get("tied", 0), score.get("scale", 0)
    if not tied or not top:
        return
    chosen = scheduler["scores"]["chosen"]
    best, taken = top[0], next((each for each in top if each["node"] == chosen["node"]), None)
    if taken and taken["total"] < best["total"]:
        yield (
            f"Moorage's best was {best['node']}, {best['total']:.4g} to {taken['total']:.4g}, tied "
            f"after rounding to {scale} steps"
            f"{_cure(best, taken, scheduler['scores'], scale)}"
        )
    else:
        yield f"tied with {tied} other{'s' if tied > 1 else ''} after rounding"


def _cure(best: Decision, taken: Decision, scores: Decision, scale: int) -> str:
    """Return what would make the node win that Moorage finds better.

    A finer scale, if the node's in-tree points are known and its lead would then outweigh them.
    """
    lead = best["total"] - taken["total"]
    known = scores["runnerUp"] if scores["runnerUp"]["node"] == best["node"] else None
    finer = scale * 10
    if known and finer <= FINEST_SCALE:
        steps = _steps(best["total"], finer) - _steps(taken["total"], finer)
        points = steps * POINTS * extender_weight(finer)
        if points > scores["chosen"]["inTree"] - known["inTree"]:
            return f": raise scoreScale to {finer}"
    return (
        f": Moorage's lead of {best['node']} is {lead:.2g} of 100; spread the scores in `normalize`"
    )


def _steps(total: float, scale: int) -> int:
    """Return the whole number that Moorage sends for a total."""
    return int(total * scale / 100 + 0.5)


def _sides(one: Decision, other: Decision, score: Decision) -> Iterator[str]:
    """Yield by how many points each side prefers one node, the larger part first."""
    moorage = (one["extenders"] or 0) - (other["extenders"] or 0)
    in_tree = one["inTree"] - other["inTree"]
    sides: list[tuple[str, int, Parts]] = [
        ("Moorage", moorage, _moorage_parts(one["node"], other["node"], score, moorage)),
        ("in-tree", in_tree, _in_tree_parts(one, other)),
    ]
    for side, points, parts in sorted(sides, key=lambda side: -side[1]):
        whole = {name: round(part) for name, part in parts.items() if round(part)}
        if points and len(whole) == 1:
            yield f"{side} {next(iter(whole))} {points:+}"
        elif points:
            yield f"{side} {points:+}{_in_brackets(whole)}"


def _moorage_parts(one: str, other: str, score: Decision, points: int) -> Parts:
    """Return what Moorage's plugins add to the difference, if the gateway keeps both nodes."""
    top = {each["node"]: each for each in score.get("top") or ()}
    if one not in top or other not in top:
        return {}
    lead = top[one]["total"] - top[other]["total"]
    if lead * points <= 0:
        return {}
    return {n: part * points / lead for n, part in _parts(top[one], top[other]).items()}


def _parts(one: Decision, other: Decision) -> Parts:
    """Return what each of Moorage's plugins adds to the lead in the totals."""
    weights = sum(each["weight"] for each in one["plugins"])
    others = {each["plugin"]: each["normalized"] for each in other["plugins"]}
    return {
        each["plugin"]: (each["normalized"] - others.get(each["plugin"], 0.0))
        * each["weight"]
        / weights
        for each in one["plugins"]
    }


def _in_tree_parts(one: Decision, other: Decision) -> Parts:
    others = {each["plugin"]: each["score"] for each in other["plugins"]}
    return {
        each["plugin"]: (each["score"] - others.get(each["plugin"], 0)) * each["weight"]
        for each in one["plugins"]
    }


def _in_brackets(parts: Parts) -> str:
    ranked = sorted(((n, p) for n, p in parts.items() if p), key=lambda part: -abs(part[1]))
    more = ["..."] if len(ranked) > SHOWN else []
    shown = ", ".join([*(f"{name} {part:+g}" for name, part in ranked[:SHOWN]), *more])
    return f" ({shown})" if shown else ""


def _points(node: Decision) -> int:
    points: int = node["inTree"] + (node["extenders"] or 0)
    return points


def _failures(gateway: Decision) -> Iterator[str]:
    """Yield what went wrong in Moorage although the pod found a node."""
    for phase in ("filter", "score"):
        for plugin in (gateway.get(phase) or {}).get("plugins") or ():
            if failure := plugin.get("failure"):
                yield f"{plugin['plugin']} failed: {failure}"
    if error := gateway.get("scoreError"):
        yield f"no scores: {error}"


# ---- pending pods


def _pending(pod: PodState, scheduler: Decision | None, gateway: Decision) -> str:
    problem = pod.problem or "not tried yet"
    if pod.outcome is not Outcome.UNSCHEDULABLE or scheduler is None or scheduler["node"]:
        return problem
    rejections = list(_rejections(scheduler, gateway, with_reasons=True))
    if not rejections:
        return problem
    tried = scheduler["offered"] + sum(each["nodes"] for each in scheduler["rejected"])
    if scheduler["nodes"] > tried:
        rejections.append(f"{scheduler['nodes'] - tried} nodes were not tried this time")
    if not scheduler["offered"]:
        rejections.append("Moorage was not asked")
    lines = [", ".join(rejections), *_preemption(problem)]
    if any(each.startswith("Moorage rejected ") for each in rejections):
        lines.append(problem.partition(" are available: ")[2].partition(". ")[0] or problem)
    # kube-scheduler does not know what an extender's rejection depends on.
    when = "the cluster changes" if scheduler["offered"] else "a change may help"
    return "; ".join([*lines, f"tried again when {when}, at the latest after 5 min"])


def _preemption(problem: str) -> Iterator[str]:
    """Yield the outcome of preemption, unless it is that there was nobody to evict."""
    outcome = problem.partition("preemption: ")[2]
    if outcome and "nodes are available" not in outcome:
        yield f"preemption: {outcome}"


def _rejections(
    scheduler: Decision, gateway: Decision, *, with_reasons: bool = False
) -> Iterator[str]:
    for each in scheduler["rejected"]:
        reasons = _reasons(each["reasons"]) if with_reasons else ""
        yield f"in-tree {each['plugin']} rejected {each['nodes']}{reasons}"
    total = scheduler["offered"] - scheduler["accepted"]
    plugins = (gateway.get("filter") or {}).get("plugins") or ()
    rejecting = [plugin for plugin in plugins if plugin.get("rejected")]
    if total and sum(plugin["rejected"] for plugin in rejecting) == total:
        for plugin in rejecting:
            counted = {each["reason"]: each["nodes"] for each in plugin.get("reasons") or ()}
            reasons = _reasons(counted) if with_reasons else ""
            yield f"Moorage {plugin['plugin']} rejected {plugin['rejected']}{reasons}"
    elif total:  # the gateway's newest attempt is another one, or forgotten
        yield f"Moorage rejected {total}"


def _reasons(counted: Mapping[str, int]) -> str:
    if len(counted) < 2:
        return "".join(f": {reason}" for reason in counted)
    ranked = sorted(counted.items(), key=lambda entry: -entry[1])
    more = ["..."] if len(ranked) > SHOWN else []
    shown = ", ".join([*(f"{nodes} {reason}" for reason, nodes in ranked[:SHOWN]), *more])
    return f" ({shown})"
