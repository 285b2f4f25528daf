"""The trial placement of a group: all of its members at once, before any of them gets a node.

Members are put onto the snapshot one after another, each where the filter plugins of the profile
and what kube-scheduler's own filters look at most let it: requests, taints, node affinity, ports.
So each is judged as if those before were placed. In the end all are taken off again.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from moorage.errors import PluginFailedError
from moorage.execution.asking import ask_for_verdicts
from moorage.execution.cycle import Supervisor
from moorage.execution.enabled import EnabledPlugin, Profile
from moorage.groups import Group
from moorage.models import Pod, Taint
from moorage.plugin.errors import WrongAnswerError, WrongTypeError
from moorage.plugin.filter import FilterPlugin
from moorage.rules.taints import DO_NOT_SCHEDULE, tolerates, untolerated
from moorage.snapshot import Nodes
from moorage.snapshot.snapshot import snapshot_of
from moorage.snapshot.verdicts import Verdicts

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

SHORT = "Insufficient "
"""What the reason of a node that lacks a resource begins with, as kube-scheduler's does."""

BY_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""Resources that nodes do not offer: kube-scheduler allocates the devices itself."""

MOST_MEMBERS = 512
"""Pods of a group that a trial places: all of them in one cycle, while other pods wait."""

TOO_LARGE = f"the group has more than {MOST_MEMBERS} pods"

EXAMPLES = 3
"""Nodes that are named for a reason."""

Rows = npt.NDArray[np.intp]


class ReasonNodes(msgspec.Struct, kw_only=True):
    """Why nodes were no place for a member: how many they are, and some of them."""

    reason: str
    nodes: int
    examples: list[str] = []


class Trial(msgspec.Struct, kw_only=True):
    """How a trial placement ended.

    Attributes:
        plugin: The plugin that named the group.
        group: The group.
        on_nodes: How many members were on nodes before it.
        nodes: By uid the node of each other member that found one; empty if the group does not fit.
        fitting: How many members found one in the best of the tries, whether that was enough.
        ahead: A group that comes before it, and whose room it would need; "" if there is none.
        domain: The value of the topology label in that try.
        failing: The first member that found none, as NAMESPACE/NAME.
        reasons: Why not, the most frequent reason first.
        lacking: The resource that it lacked on most nodes; "" if it was not a resource.
        lacking_free: On how many nodes of the cluster there is enough of it for one member.
        lacking_domain: The only value of the topology label that these have; "" if they have more.
        like: The node that would hold most members if it were empty, of several the first by name;
            `more_nodes` of these would do.
    """

    plugin: str
    group: Group
    on_nodes: int = 0
    nodes: dict[str, str] = {}
    fitting: int = 0
    ahead: str = ""
    domain: str = ""
    failing: str = ""
    reasons: list[ReasonNodes] = []
    lacking: str = ""
    lacking_free: int = 0
    lacking_domain: str = ""
    like: str = ""
    more_nodes: int = 0

    @property
    def members(self) -> int:
        """How many members exist."""
        return len(self.group.members)

    @property
    def reason(self) -> str:
        """Why the group does not fit: a constant text."""
        waits = "another group is ahead of the pod's" if self.ahead else ""
        return self.refusal or waits or "pods of the group found no nodes"

    @property
    def refusal(self) -> str:
        """Why there is no need to look for nodes; "" if there is."""
        if self.members > MOST_MEMBERS:
            return TOO_LARGE
        missing = "pods of the group are missing" if self.members < self.group.min_count else ""
        return self.group.problem or missing


def ask_for_group(
    enabled: EnabledPlugin, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> Group | None:
    """Return the group that a filter plugin says *pod* belongs to; None if it belongs to none.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly, or took too long.
        TimeoutError: The supervisor's deadline passed.
    """
    supervisor.begin(enabled)
    return supervisor.call(enabled, "group", _checked_group, enabled.plugin, pod, nodes)


def _checked_group(plugin: FilterPlugin, pod: Pod, nodes: Nodes) -> Group | None:
    group: object = plugin.group(pod, nodes)
    if group is None:
        return None
    if not isinstance(group, Group):
        raise WrongTypeError(plugin.group, group, "Group or None")
    if all(member.uid != pod.uid for member in group.members):
        raise WrongAnswerError(plugin.group, "returned a group of which the pod is no member")
    return group


@asynccontextmanager
async def tried(
    enabled: EnabledPlugin,
    group: Group,
    profile: Profile,
    pod: Pod,
    nodes: Nodes,
    supervisor: Supervisor,
) -> AsyncIterator[Trial]:
    """Place the group of *pod*, which may use only *nodes*.

    If it fits, the other members are on their nodes inside of the block.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    trial = Trial(plugin=enabled.name, group=group)
    placing = _Placing(profile, pod, nodes, supervisor)
    try:
        # What groups of others cost, or break, is not to end the cycle of this pod.
        halfway = (supervisor.clock() + supervisor.deadline) / 2
        for other in group.ahead:
            before = len(placing.placed)
            try:
                fits = await placing.place(Trial(plugin=enabled.name, group=other), until=halfway)
            except PluginFailedError:
                placing.undo(before)
                continue
            if fits:
                trial.ahead = trial.ahead or other.name
        fits = await placing.place(trial)
        if not fits and trial.ahead:
            placing.undo()
            alone = Trial(plugin=enabled.name, group=group)
            if not await placing.place(alone):
                trial = alone  # it does not fit without the others either
            placing.undo()
        elif fits:
            trial.ahead = ""
            if pod.uid in trial.nodes:
                placing.take_off(pod.uid)
        yield trial
    finally:
        placing.undo()


class _Placing:
    """Puts members onto the snapshot, and takes them off again."""

    def __init__(self, profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor) -> None:
        self._profile = profile
        self._pod = pod
        self._own_rows = nodes.rows
        self._cluster = nodes.cluster
        self._snapshot = snapshot_of(nodes)
        self._supervisor = supervisor
        self.placed: list[str] = []

    def undo(self, keep: int = 0) -> None:
        """Take off all but the first *keep* that were placed."""
        for uid in self.placed[keep:]:
            self._snapshot.remove_pod(uid)
        del self.placed[keep:]

    def take_off(self, uid: str) -> None:
        """Take one off that was placed."""
        self._snapshot.remove_pod(uid)
        self.placed.remove(uid)

    async def place(self, trial: Trial, until: float = float("inf")) -> bool:
        """Place as many members of a group as fit; note in *trial* how that went.

        It is given up as one that does not fit when the clock passes *until*.

        Returns:
            Whether they are enough, with the pod of the cycle if it is one of them. Then they stay.
        """
        row_of, members = self._snapshot.pods.row_of, trial.group.members
        there = [row for member in members if (row := row_of(member.uid)) is not None]
        waiting = [member for member in members if row_of(member.uid) is None]
        trial.on_nodes = len(there)
        if trial.refusal:
            return False
        before, best = len(self.placed), trial
        for domain, rows in self._domains(trial.group, there):
            tried = Trial(plugin=trial.plugin, group=trial.group, domain=domain)
            tried.on_nodes = trial.on_nodes
            await self._fill(tried, waiting, rows, until)
            if best is trial or (len(tried.nodes), tried.fitting) > (len(best.nodes), best.fitting):
                best = tried
            self.undo(before)
            if len(tried.nodes) == len(waiting):
                break
        for name in Trial.__struct_fields__:
            setattr(trial, name, getattr(best, name))
        if trial.more_nodes:
            missing = trial.group.min_count - trial.on_nodes - trial.fitting
            trial.more_nodes = -(-max(missing, 0) // trial.more_nodes)
        for member in waiting if trial.nodes else ():
            if (node := trial.nodes.get(member.uid)) is not None:
                row = self._snapshot.row_of(node)
                assert row is not None  # noqa: S101 - nothing else changes the snapshot
                self._put(member, row)
        return bool(trial.nodes)

    def _domains(self, group: Group, there: Sequence[int]) -> Iterator[tuple[str, Rows]]:
        """Yield nodes to try, in order; if members are placed, only those of most of them."""
        nodes = self._cluster
        if group.order_key:
            values = nodes.label(group.order_key)
            keys = [
                (_natural(values.values[code] or ""), _natural(name))
                for code, name in zip(values.codes.tolist(), nodes.names, strict=True)
            ]
            order = sorted(range(len(keys)), key=keys.__getitem__)
            nodes = Nodes(self._snapshot, nodes.rows[order])
        if not group.topology_key:
            yield "", nodes.rows
            return
        column = nodes.label(group.topology_key)
        here = Nodes(self._snapshot, np.array(there, np.intp)).label(group.topology_key)
        counts = Counter(here.values[code] for code in here.codes.tolist())
        found = counts.most_common(1) if there else ()
        values_to_try = [value for value, _ in found] or sorted(
            {column.values[code] or "" for code in set(column.codes.tolist())}, key=_natural
        )
        for value in values_to_try:
            if value:
                yield value, nodes.rows[column.isin((value,))]

    async def _fill(self, trial: Trial, waiting: Sequence[Pod], rows: Rows, until: float) -> None:
        """Place members on the nodes in *rows* for as long as enough of them may still fit."""
        needed = max(trial.group.min_count - trial.on_nodes, 0)
        found: dict[str, str] = {}
        has_own, failed = False, 0
        for member in waiting:
            if self._supervisor.clock() > until:
                break
            is_own = member.uid == self._pod.uid
            usable = rows[np.isin(rows, self._own_rows)] if is_own else rows
            row = await self._row_for(member, usable, trial)
            if row is not None:
                found[member.uid] = self._put(member, row)
                continue
            failed += 1
            has_own = has_own or is_own
            if len(waiting) - failed < needed:
                break
        trial.fitting = len(found)
        if failed + len(found) == len(waiting) and len(found) >= needed and not has_own:
            trial.nodes = found

    def _put(self, pod: Pod, row: int) -> str:
        """Put a pod onto the node in a row; return the node's name."""
        node = self._snapshot.node_at(row)
        assert node is not None  # noqa: S101 - it was looked at just now
        placed = replace(pod, spec=replace(pod.spec, node_name=node.name))
        self._snapshot.place_pod(row, placed)
        self.placed.append(pod.uid)
        return node.name

    async def _row_for(self, pod: Pod, rows: Rows, trial: Trial) -> int | None:
        """Return the first row in which a member may be; if there is none, *trial* says why."""
        nodes = Nodes(self._snapshot, rows)
        reasons: dict[str, list[str]] = {}
        verdicts = in_tree_verdicts(pod, nodes)
        nodes = _passing(nodes, verdicts, reasons)
        for enabled in self._profile.plugins:
            if not nodes.rows.size:
                break
            self._supervisor.owner = (pod.namespace, pod.name)
            self._supervisor.begin(enabled)
            try:
                answer = await ask_for_verdicts(enabled, pod, nodes, self._supervisor)
            except PluginFailedError:
                if enabled.aborts:
                    raise
                continue
            if answer is not None:
                nodes = _passing(nodes, answer, reasons)
        if nodes.rows.size:
            return int(nodes.rows[0])
        if not trial.failing:
            self._note(pod, reasons, trial)
        return None

    def _note(self, pod: Pod, reasons: dict[str, list[str]], trial: Trial) -> None:
        trial.failing = f"{pod.namespace}/{pod.name}"
        trial.reasons = [
            ReasonNodes(reason=reason, nodes=len(names), examples=sorted(names)[:EXAMPLES])
            for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1]))
        ]
        if not (trial.reasons and trial.reasons[0].reason.startswith(SHORT)):
            return
        trial.lacking = trial.reasons[0].reason.removeprefix(SHORT)
        nodes, key = self._cluster, trial.group.topology_key
        free = nodes.allocatable(trial.lacking) - nodes.requested(trial.lacking)
        having = nodes.where(free >= max(pod.requests.get(trial.lacking, 0), 1))
        trial.lacking_free = len(having)
        values = {node.labels.get(key, "") for node in having} if key else set()
        trial.lacking_domain = values.pop() if len(values) == 1 else ""
        each = np.full(len(nodes), np.inf)
        for resource, amount in {**pod.requests, "pods": 1}.items():
            if amount > 0:
                each = np.minimum(each, nodes.allocatable(resource) // amount)
        if len(nodes) and each.max() >= 1:
            best = np.flatnonzero(each == each.max())
            trial.like = min(nodes.names[row] for row in best)  # the same one each time
            trial.more_nodes = int(each.max())  # for one node; `place` divides by it


def _passing(nodes: Nodes, verdicts: Verdicts, reasons: dict[str, list[str]]) -> Nodes:
    """Return the nodes that pass; add the names of the others to those with their reasons."""
    if verdicts.untouched:
        return nodes
    for code, rejection in enumerate(verdicts.reasons, start=1):
        names = nodes.where(verdicts.codes == code).names
        reasons.setdefault(rejection.reason, []).extend(names)
    return nodes.where(verdicts.passed)


def in_tree_verdicts(pod: Pod, nodes: Nodes) -> Verdicts:
    """Return what kube-scheduler's own filters say, as far as they look at a node by itself."""
    verdicts, tolerations = nodes.verdicts(), pod.spec.tolerations
    cordoned = nodes.unschedulable()
    if cordoned.any() and not any(tolerates(each, CORDONED) for each in tolerations):
        verdicts.reject(cordoned, "node(s) were unschedulable")
    tainted = nodes.taints().where(
        lambda taints: untolerated(taints or (), tolerations, DO_NOT_SCHEDULE) is not None
    )
    verdicts.reject(tainted, "node(s) had untolerated taint(s)")
    if pod.spec.node_selector or pod.spec.affinity:
        unfit = ~nodes.required_by(pod)
        verdicts.reject(unfit, "node(s) didn't match Pod's node affinity/selector")
    if pod.host_ports:
        verdicts.reject(nodes.port_conflicts(pod.host_ports), "node(s) didn't have free ports")
    full = nodes.requested("pods") >= nodes.allocatable("pods")
    verdicts.reject(full, "Too many pods")
    for resource, amount in pod.requests.items():
        if amount > 0 and not resource.startswith(BY_DEVICE_CLASS):
            short = amount > nodes.allocatable(resource) - nodes.requested(resource)
            verdicts.reject(short, f"{SHORT}{resource}")
    return verdicts


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key by which "r2" comes before "r10"."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
