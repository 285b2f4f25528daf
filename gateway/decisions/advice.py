"""Says what would have to change so that a pod gets a node: on the nodes that it may use."""

import re
from collections.abc import Iterator, Mapping, Sequence

from gateway.decisions.explanation import RejectedNodes
from gateway.decisions.survey import Obstacle, Survey

KUBE_SCHEDULER, GATEWAY, OURS = "kube-scheduler", "Moorage's gateway", "Moorage "
"""Who rejects nodes; the last stands before the names of plugins."""

Steps = Sequence[tuple[str, str]]
"""Patterns, each with what helps."""

MOST_STEPS = 2
"""Ways out that are listed; each is enough by itself."""

NAMED = 3
"""Nodes that a step names."""

SEEN = r"Insufficient |Too many pods|untolerated taint|unschedulable|ode ?[Aa]ffinity"
"""Reasons of kube-scheduler that a survey looks at by itself."""

ANY_NODE = "a node"

UNFIXABLE = ("none", "small")

STEPS = (
    (r"Insufficient (\S+)", "free {0} on a node, add a node, or lower the pod's requests of {0}"),
    (r"Too many pods", "remove pods from a node, or add a node"),
    (r"untolerated taint", "tolerate the taint in the pod, or remove it from a node"),
    (
        r"node affinity|NodeAffinity",
        "change the pod's nodeSelector or affinity, or a node's labels",
    ),
    (r"unschedulable", "uncordon a node"),
    (
        r"topology spread",
        "relax the pod's topologySpreadConstraints, or add nodes in other domains",
    ),
    (r"anti-affinity|pod affinity", "change the affinity rules, or move the pods that they match"),
    (r"free ports", "change the pod's hostPort, or free the port on a node"),
    (
        r'persistentvolumeclaim "(\S+)" not found',
        "create PersistentVolumeClaim {0}, or name another one in the pod's volumes",
    ),
    (
        r"unbound immediate PersistentVolumeClaims",
        "kubectl describe the pod's PersistentVolumeClaims: a StorageClass or a volume is missing",
    ),
    (r"[Vv]olume", "kubectl describe the pod's PersistentVolumeClaims"),
    (r"(?i)resource ?claim", "kubectl describe the pod's ResourceClaims"),
)
"""What helps against reasons of kube-scheduler's own plugins, whatever the nodes are."""


def first_step(steps: Steps, text: str) -> list[str]:
    """Return the step of the first pattern that a text has."""
    hits = ((re.search(pattern, text), step) for pattern, step in steps)
    return next(([step.format(*hit.groups())] for hit, step in hits if hit), [])


def advice(
    rejections: Sequence[RejectedNodes],
    survey: Survey | None,
    rejecting: Mapping[str, str],
) -> list[str]:
    """Return what would help a pod that no node suits, the best first; each is enough.

    Args:
        rejections: What kube-scheduler's message says.
        survey: What the nodes lack; None if nobody has looked.
        rejecting: Of some nodes that the pod may use, the plugin of Moorage that rejects them.
    """
    if survey is None or not survey.nodes:
        # Of several reasons it is not known which concern the nodes that the pod may use.
        return [step for each in rejections if len(rejections) == 1 and (step := _general(each))]
    if not survey.usable:
        return [_unusable(survey)]
    reasons = {each.reason for each in rejections}
    groups = _by_obstacles(survey, reasons)
    suiting = groups.pop((), [])
    found = list(_unseen(rejections, survey, rejecting, suiting))
    if suiting and not found:  # the cluster has changed since
        return [f"wait: {_where(suiting, survey)} suits it by now, as far as the gateway sees"]
    single = {each[0]: names for each, names in groups.items() if len(each) == 1}
    ranked = sorted(single.items(), key=lambda each: (each[0].kind in UNFIXABLE, -len(each[1])))
    for obstacle, names in ranked:
        step = _step(obstacle, names, survey)
        # What is undone at once comes first.
        found.insert(0 if obstacle.kind == "cordoned" else len(found), step)
    if not found and groups:
        everywhere = set[Obstacle].intersection(*map(set, groups))
        found = [
            _step(each, survey.usable, survey)
            for each in sorted(everywhere)
            if each.kind in UNFIXABLE
        ]
    if not found and groups:
        each, names = min(groups.items(), key=lambda item: len(item[0]))
        found = [_together(each, names, survey)]
    return list(dict.fromkeys(found))[:MOST_STEPS]


def uncordoning(survey: Survey | None) -> list[str]:
    """Return which nodes suit a pod but for their being cordoned."""
    return survey.by_obstacles.get((Obstacle("cordoned"),), []) if survey is not None else []


def _by_obstacles(survey: Survey, reasons: set[str]) -> dict[tuple[Obstacle, ...], list[str]]:
    """Return the nodes by what keeps the pod off them, without what does not keep it off.

    Where a DeviceClass backs an extended resource, nodes need not offer it, and kube-scheduler does
    not say that it is short. Nor does a node matter that is too small where others are not.
    """
    found: dict[tuple[Obstacle, ...], list[str]] = {}
    for combination, names in survey.by_obstacles.items():
        kept = tuple(
            each
            for each in combination
            if "/" not in each.what
            or each.kind == "tainted"
            or any(f"Insufficient {each.what}" in reason for reason in reasons)
        )
        if any(each.kind in UNFIXABLE and survey.has(each.what) for each in kept):
            continue
        found.setdefault(kept, []).extend(names)
    return found


def _unseen(
    rejections: Sequence[RejectedNodes],
    survey: Survey,
    rejecting: Mapping[str, str],
    suiting: Sequence[str],
) -> Iterator[str]:
    """Yield what helps against reasons that the survey does not look at."""
    plugins = {rejecting[name] for name in suiting if name in rejecting}
    unseen = [
        each for each in rejections if each.by != KUBE_SCHEDULER or not re.search(SEEN, each.reason)
    ]
    for each in unseen:
        is_asked = each.by.removeprefix(OURS) in plugins
        if plugins and each.by.startswith(OURS) and not is_asked:
            continue
        if not suiting and each is not rejections[0]:
            continue
        if step := _general(each, _where(suiting, survey) if is_asked else ANY_NODE):
            yield step


def _general(rejected: RejectedNodes, where: str = ANY_NODE) -> str:
    """Return what helps against a reason, there or on any node; "" if that is not known."""
    if rejected.by == GATEWAY:
        return "see /readyz of the gateway, which has not seen these nodes yet"
    if not rejected.by.startswith(OURS):
        return "".join(first_step(STEPS, rejected.reason))
    remove = ", or remove pods" if rejected.evicting else ""
    target = f"the pod or {where}" if where.startswith(ANY_NODE) else f"the pod, or {where},"
    ask = f"change {target} to what {rejected.by.removeprefix(OURS)} asks for{remove}"
    return f"{ask}; per node: `moorage explain --node`"


def _step(obstacle: Obstacle, names: Sequence[str], survey: Survey) -> str:
    """Return what helps where only this keeps the pod off some nodes."""
    kind, what = obstacle
    where, add = _where(names, survey), _add(survey)
    lower = f"lower the pod's requests of {what}"
    match kind:
        case "cordoned":
            return f"uncordon {where}"
        case "tainted" if what.startswith("node.kubernetes.io/"):
            return f"see why {where} has the taint {what}, which Kubernetes sets and removes itself"
        case "tainted":
            return f"tolerate the taint {what} in the pod, or remove it from {where}"
        case "pods":
            return f"remove pods from {where}{', or add a node' if add else ''}"
        case "short":
            return f"free {what} on {where}{add}, or {lower}"
        case "none":
            may = " that the pod may use" if _is_pinned(survey) else ""
            return f"no node{may} offers {what}: add one that does, or {lower}"
    most, wanted = survey.amount(what, largest=True), survey.amount(what)
    if not add:
        return f"{lower}: {_where(names, survey)} has {most} in all, and the pod requests {wanted}"
    may = " that the pod may use" if _is_pinned(survey) else ""
    add = f"add a node with {wanted} of {what}{_like(survey, 'and')}"
    return f"{add}, or {lower}: no node{may} has more than {most}"


def _together(obstacles: Sequence[Obstacle], names: Sequence[str], survey: Survey) -> str:
    """Return what helps where several things keep the pod off some nodes."""
    actions = {
        "cordoned": "uncordon it",
        "tainted": "remove or tolerate the taint {}",
        "pods": "remove pods",
        "short": "free {}",
    }
    return f"on {_where(names, survey)}: " + " and ".join(
        actions[each.kind].format(each.what) for each in obstacles if each.kind in actions
    )


def _unusable(survey: Survey) -> str:
    """Return what helps a pod whose selector or affinity allows no node."""
    labels = ",".join(f"{key}={value}" for key, value in survey.labels.items())
    if survey.names and len(survey.lost) == len(survey.names):
        lost = ", ".join(survey.lost)
        return f"the pod's affinity names node {lost}: create it, or change the affinity"
    there = [name for name in survey.names if name not in survey.lost]
    if survey.host:  # a kubelet writes that label
        more = f" and the labels {labels}" if labels else ""
        return f"no node has the host name {survey.host}{more}: change the pod's nodeSelector"
    where = f"node {' or '.join(there[:NAMED])}" if there else "a node"
    if labels:
        return f"label {where} with {labels}, or change the pod's nodeSelector"
    return f"change the pod's nodeSelector or affinity, or the labels of {where}"


def _is_pinned(survey: Survey) -> bool:
    return len(survey.usable) < survey.nodes


def _where(names: Sequence[str], survey: Survey) -> str:
    """Return nodes in words: their names, if these are few and not all."""
    if len(names) <= NAMED and len(names) < survey.nodes:
        return " or ".join(sorted(names))
    return f"{ANY_NODE}{_like(survey)}"


def _like(survey: Survey, word: str = "with") -> str:
    labels = ",".join(f"{key}={value}" for key, value in survey.labels.items())
    return f" {word} {labels}" if labels and _is_pinned(survey) else ""


def _add(survey: Survey) -> str:
    """Return the advice to add a node; "" for a pod that runs on nodes of given names only."""
    return "" if survey.names or survey.host else f", add a node{_like(survey)}"
