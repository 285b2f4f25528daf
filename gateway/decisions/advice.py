"""Says what would have to change so that a pod gets a node: on the nodes that it may use.

kube-scheduler's message adds reasons up over all nodes, so it does not say which of them concern
the node that a pod is pinned to. The gateway looks at each node by itself, for what in-tree filters
ask most: selectors, cordons, taints, room. What else there is, such as volumes, it does not see.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gateway.cluster.placements import requested
from gateway.cluster.state import ClusterState
from gateway.decisions.explanation import Obstacle, RejectedNodes, Survey
from gateway.decisions.rejections import ANY_NODE, KUBE_SCHEDULER, OURS, general_step
from gateway.decisions.sentences import SHOWN
from moorage.models import NodeManifest, Pod, Taint
from moorage.rules.device_classes import PREFIX as BY_DEVICE_CLASS
from moorage.rules.nodes import allows_node
from moorage.rules.taints import DO_NOT_SCHEDULE, tolerates, untolerated

AT_ONCE = 50
"""Nodes after which cycles get their turn."""

MOST_SURVEYS = 200
"""Surveys that are kept while the cluster stays as it is."""

HOSTNAME = "kubernetes.io/hostname"

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

MOST_STEPS = 2
"""Ways out that are listed; each is enough by itself."""

SEEN = r"Insufficient |Too many pods|untolerated taint|unschedulable|ode ?[Aa]ffinity"
"""Reasons of kube-scheduler that a survey looks at by itself."""

UNFIXABLE = ("none", "small")


class Surveyor:
    """Makes surveys; equal pods have one until the cluster changes."""

    def __init__(self, state: ClusterState) -> None:
        """Look at the nodes of *state*."""
        self._state = state
        self._used: dict[str, tuple[int, Mapping[str, int]]] = {}
        self._kept: dict[bytes, Survey] = {}
        self._generation = 0

    async def survey(self, pod: Pod) -> Survey:
        """Return what the nodes lack for a pod; those that come or go meanwhile may be missing."""
        generation = self._state.generation
        if self._generation != generation or len(self._kept) >= MOST_SURVEYS:
            self._kept.clear()
        self._generation = generation
        affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
        of_pod = (pod.spec.node_selector, affinity, pod.spec.tolerations, pod.requests)
        key = msgspec.json.encode(of_pod)
        if (kept := self._kept.get(key)) is not None:
            return kept
        entries = self._state.rows.entries
        labels = dict(pod.spec.node_selector)
        found = Survey(
            nodes=len(entries),
            usable=[],
            by_obstacles={},
            requests=pod.requests,
            largest={},
            names=(names := list(_names(pod))),
            lost=[name for name in names if name not in entries],
            host=labels.pop(HOSTNAME, ""),
            labels=labels,
        )
        for count, name in enumerate(list(entries), start=1):
            if (entry := entries.get(name)) is not None and allows_node(pod, entry.manifest):
                found.usable.append(name)
                obstacles = tuple(self._obstacles(pod, entry.manifest))
                found.by_obstacles.setdefault(obstacles, []).append(name)
                for resource in pod.requests:
                    there = entry.manifest.allocatable.get(resource, 0)
                    found.largest[resource] = max(found.largest.get(resource, 0), there)
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)
        for gone in self._used.keys() - entries.keys():
            del self._used[gone]
        if self._state.generation == generation:
            self._kept[key] = found
        return found

    def lacks(self, pod: Pod, name: str) -> list[str]:
        """Return why kube-scheduler's own filters reject a node, as far as they are looked at."""
        if (entry := self._state.rows.entries.get(name)) is None:
            return []
        if not allows_node(pod, entry.manifest):
            return [_mismatch(pod, entry.manifest)]
        return [each.reason for each in self._obstacles(pod, entry.manifest)]

    def node_of(self, given: str) -> str:
        """Return the node that people mean, by its name or host name; "" if there is none."""
        entries = self._state.rows.entries
        if given in entries:
            return given
        hosts, shorts = [], []
        for name, entry in entries.items():
            hosts += [name] if entry.manifest.metadata.labels.get(HOSTNAME) == given else []
            shorts += [name] if name.partition(".")[0] == given else []
        for found in (hosts, shorts):
            if len(found) == 1:
                return found[0]
        return ""

    def _obstacles(self, pod: Pod, node: NodeManifest) -> Iterator[Obstacle]:
        tolerations, taints = pod.spec.tolerations, node.spec.taints
        if node.spec.unschedulable:
            taints = tuple(each for each in taints if each.key != CORDONED.key)
            if not any(tolerates(each, CORDONED) for each in tolerations):
                yield Obstacle("cordoned")
        if (taint := untolerated(taints, tolerations, DO_NOT_SCHEDULE)) is not None:
            value = f"={taint.value}" if taint.value else ""
            yield Obstacle("tainted", f"{taint.key}{value}:{taint.effect}")
        used, there = self._requested(node.name), node.allocatable
        if used.get("pods", 0) >= there.get("pods", 0):
            yield Obstacle("pods")
        for resource, amount in pod.requests.items():
            has = there.get(resource, 0)
            if amount <= 0 or resource.startswith(BY_DEVICE_CLASS):
                continue
            if amount > has:
                yield Obstacle("small" if has else "none", resource)
            elif amount > has - used.get(resource, 0):
                yield Obstacle("short", resource)

    def _requested(self, node: str) -> Mapping[str, int]:
        """Return what the pods on a node request, and under "pods" how many they are."""
        changed = int(self._state.rows.touched[self._state.rows.of[node]])
        kept = self._used.get(node)
        if kept is None or kept[0] != changed:
            kept = self._used[node] = changed, requested(self._state.placements(node))
        return kept[1]


def _names(pod: Pod) -> Iterator[str]:
    """Yield the nodes that the pod's required affinity names."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        for field in term.match_fields:
            yield from field.values if field.operator == "In" else ()


def _mismatch(pod: Pod, node: NodeManifest) -> str:
    labels: Sequence[str] = [
        f"{key}={value}"
        for key, value in pod.spec.node_selector.items()
        if node.metadata.labels.get(key) != value
    ]
    wanted = f"nodeSelector wants {', '.join(labels)}" if labels else "affinity does not allow it"
    return f"the pod's {wanted}"


# ---- in words


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
        return [
            step for each in rejections if len(rejections) == 1 and (step := general_step(each))
        ]
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
        if step := general_step(each, _where(suiting, survey) if is_asked else ANY_NODE):
            yield step


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
    where = f"node {' or '.join(there[:SHOWN])}" if there else "a node"
    if labels:
        return f"label {where} with {labels}, or change the pod's nodeSelector"
    return f"change the pod's nodeSelector or affinity, or the labels of {where}"


def _is_pinned(survey: Survey) -> bool:
    return len(survey.usable) < survey.nodes


def _where(names: Sequence[str], survey: Survey) -> str:
    """Return nodes in words: their names, if these are few and not all."""
    if len(names) <= SHOWN and len(names) < survey.nodes:
        return " or ".join(sorted(names))
    return f"{ANY_NODE}{_like(survey)}"


def _like(survey: Survey, word: str = "with") -> str:
    labels = ",".join(f"{key}={value}" for key, value in survey.labels.items())
    return f" {word} {labels}" if labels and _is_pinned(survey) else ""


def _add(survey: Survey) -> str:
    """Return the advice to add a node; "" for a pod that runs on nodes of given names only."""
    return "" if survey.names or survey.host else f", add a node{_like(survey)}"
