"""The trial placement of a group: all of its members at once, before any of them gets a node.

Members are put onto the snapshot one after another, each where kube-scheduler's own filters and
those of the profile let it. So each is judged as if those before were placed. In the end all are
taken off again.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from moorage.errors import PluginFailedError
from moorage.execution.cycle import Supervisor
from moorage.execution.enabled import EnabledPlugin, Profile
from moorage.execution.filtering import FilterRun, run_filter_plugins
from moorage.groups import Group, ReasonNodes, Trial
from moorage.in_tree.filters import FILTERS
from moorage.in_tree.filters.node_resources_fit import INSUFFICIENT
from moorage.models import Pod
from moorage.plugin.errors import WrongAnswerError, WrongTypeError
from moorage.plugin.hooks import FilterPlugin
from moorage.snapshot import Nodes
from moorage.snapshot.snapshot import snapshot_of

_IN_TREE = tuple(
    EnabledPlugin(plugin=kind(kind.Args()), aborts=False, time_budget=float("inf"))
    for kind in FILTERS
)
"""kube-scheduler's own filters, which look at members before those of the profile."""

EXAMPLES = 3
"""Nodes that are named for a reason."""

Rows = npt.NDArray[np.intp]


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
        self._profile = Profile(name=profile.name, plugins=(*_IN_TREE, *profile.plugins))
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
        self._supervisor.owner = (pod.namespace, pod.name)
        nodes = Nodes(self._snapshot, rows)
        run = await run_filter_plugins(self._profile, pod, nodes, self._supervisor)
        passing = np.flatnonzero(run.codes == 0)
        if passing.size:
            return int(rows[passing[0]])
        if not trial.failing:
            self._note(pod, nodes, run, trial)
        return None

    def _note(self, pod: Pod, rejected: Nodes, run: FilterRun, trial: Trial) -> None:
        trial.failing = f"{pod.namespace}/{pod.name}"
        # kube-scheduler's own filters say nothing of it: an autoscaler knows their rules itself.
        trial.cured_by = next((each.cured_by for each in run.reasons if each.cured_by), "")
        reasons: dict[str, list[str]] = {}
        for code, rejection in enumerate(run.reasons, start=1):
            names = rejected.where(run.codes == code).names
            for reason in rejection.reasons:
                reasons.setdefault(reason, []).extend(names)
        trial.reasons = [
            ReasonNodes(reason=reason, nodes=len(names), examples=sorted(names)[:EXAMPLES])
            for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1]))
        ]
        if not (trial.reasons and trial.reasons[0].reason.startswith(INSUFFICIENT)):
            return
        trial.lacking = trial.reasons[0].reason.removeprefix(INSUFFICIENT)
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


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key by which "r2" comes before "r10"."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
