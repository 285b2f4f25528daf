"""Writes the MoorageConfiguration with the plugins of a Policy. For `cli.legacy.convert`."""

from collections.abc import Iterator, Mapping

from cli.legacy.names import FILTERS, MOORAGE_FIT, SCORES
from cli.legacy.plan import Object, Plan
from cli.legacy.upstream import MOORAGE_SCALE, resources, shape
from moorage.plugin.base import Plugin
from moorage_host.policy import API_VERSION, IN_TREE, KIND, Kind

Available = Mapping[Kind, Mapping[str, type[Plugin]]]
"""The plugins that Moorage has, by kind and name."""


def moorage_configuration(plan: Plan, available: Available, scheduler_name: str) -> Object:
    """Return the document; what Moorage lacks is added to the plan's notes.

    Args:
        plan: What the Policy asks for.
        available: The plugins to choose from.
        scheduler_name: The name of the profile.
    """
    filters, scores = _filters(plan, available), _scores(plan, available)
    points: Object = {}
    if filters is None or scores is None:  # a Policy that lists none has the default ones
        points["multiPoint"] = {"enabled": [{"name": IN_TREE}]}
    if filters is not None:
        points["filter"] = _only([{"name": name} for name in filters])
    if scores is not None:
        points["score"] = _only([{"name": n, "weight": weight} for n, weight in scores.items()])
    profile: Object = {"schedulerName": scheduler_name, "plugins": points}
    enabled_names = {*(filters or ()), *(scores or ())}
    if arguments := list(_arguments(plan, enabled_names)):
        profile["pluginConfig"] = arguments
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "scoreScale": MOORAGE_SCALE,
        "profiles": [profile],
    }


def _only(enabled: list[Object]) -> Object:
    return {"disabled": [{"name": "*"}], "enabled": enabled}


def _filters(plan: Plan, available: Available) -> list[str] | None:
    if plan.filters is None:
        return None
    wanted = [name for name in FILTERS if name in plan.filters]
    if missing := [name for name in wanted if name not in available["filter"]]:
        text = f"Moorage has no filter {', '.join(missing)}: kube-scheduler's own goes on"
        plan.note("predicates", text)
    return [name for name in wanted if name in available["filter"]]


def _scores(plan: Plan, available: Available) -> dict[str, int] | None:
    if plan.scores is None:
        return None
    wanted: dict[str, int] = {}
    for name in SCORES:
        if name == "NodeResourcesFit":
            wanted |= {MOORAGE_FIT[each]: weight for each, weight in plan.strategies.items()}
        elif name in plan.scores:
            wanted[name] = plan.scores[name]
    if plan.equal and "Equal" in available["score"]:
        wanted["Equal"] = plan.equal
        plan.note("priorities", "EqualPriority became Equal in Moorage")
    if missing := [name for name in wanted if name not in available["score"]]:
        text = f"Moorage has no score {', '.join(missing)}: kube-scheduler's own goes on"
        plan.note("priorities", text)
    return {name: weight for name, weight in wanted.items() if name in available["score"]}


def _arguments(plan: Plan, enabled: set[str]) -> Iterator[Object]:
    """Yield the arguments that the Policy sets, of plugins that run."""
    set_by_policy: Mapping[str, Object] = {
        "NodeResourcesBalancedAllocation": {"form": "older"} if plan.scores is not None else {},
        "RequestedToCapacityRatio": {"shape": shape(plan), "resources": resources(plan)},
        "PodTopologySpread": {"defaultingType": "System" if plan.spreads else "List"},
        "InterPodAffinity": (
            {"hardPodAffinityWeight": plan.hard_affinity} if plan.hard_affinity else {}
        ),
    }
    for name in sorted(enabled & set_by_policy.keys()):
        if args := set_by_policy[name]:
            yield {"name": name, "args": args}
