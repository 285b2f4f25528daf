"""The filter half for pods that come time and again: replicas are asked about what is new.

If all filter plugins of a profile are node-local, a verdict on a node holds for all equal pods
until the node changes. Called by `gateway.cycle.runner`.
"""

from collections.abc import Sequence

import numpy as np

from gateway.cache.equal_pods import EqualPods
from gateway.cache.node_values import RowValues, to_ask
from gateway.cache.store import Store
from gateway.calls import CallFailedError
from gateway.cluster.state import ClusterState
from gateway.cycle.filtering import Filtered, FilterHalf
from gateway.cycle.merging import FilteredShard, ReasonKey, translated, worded
from gateway.cycle.node_set import Candidates
from gateway.cycle.request import Subject
from gateway.decisions.from_protobuf import note_memory
from gateway.policy.policy import PolicyHolder
from moorage.v1 import filter_pb2

MOST_REASONS = 1000
"""Reasons that are kept for one signature; a plugin may have another one each time."""


class KnownVerdicts:
    """What filters said about pods with one signature.

    Attributes:
        codes: The verdicts by row.
        pod: Whom it was said of last, as NAMESPACE/NAME.
        has_failed: Whether a plugin failed when it was asked last.
    """

    def __init__(self, state: ClusterState, *, compares_manifests: bool) -> None:
        self.pod = ""
        self.has_failed = False
        self._state = state
        self._compares_manifests = compares_manifests
        self._forget()

    def _forget(self) -> None:
        self.codes = RowValues(
            self._state, 1, np.uint16, compares_manifests=self._compares_manifests
        )
        self._reasons: dict[ReasonKey, int] = {}
        self._result = filter_pb2.FilterResult()

    def learn(self, subject: Subject, filtered: Filtered) -> bool:
        """Take over what replicas just said; not if it cannot be put together with the rest."""
        self.has_failed = any(plugin.failure for plugin in filtered.record.plugins)
        if self.has_failed:
            return False  # next time it may work
        said = filtered.verdicts
        if len(self._reasons) + len(said.result.reasons) > MOST_REASONS:
            self._forget()
            return False
        codes = translated(said, self._reasons)
        self.codes.put(said.found.rows, codes, filtered.generation)
        # Plugins that found no nodes left are missing in a report.
        reports = max(self._result.plugins, said.result.plugins, key=len)
        self._result = filter_pb2.FilterResult(reasons=worded(self._reasons), plugins=reports)
        for report in self._result.plugins:  # they are of this cycle
            report.ClearField("duration")
            report.ClearField("note")
        self.pod = f"{subject.pod.namespace}/{subject.pod.name}"
        return True

    def verdicts(self, found: Candidates) -> FilteredShard:
        """Return what is known of nodes, whose rows are not stale."""
        codes = self.codes.at(found.rows)[0]
        counts = np.bincount(codes, minlength=len(self._reasons) + 1).tolist()
        return FilteredShard(self._words(counts), found, codes, counts)

    def _words(self, counts: Sequence[int]) -> filter_pb2.FilterResult:
        """Return the reasons, and the plugins that would have run: none without nodes left."""
        if counts[0]:
            return self._result
        rejecting = {r.plugin for r, n in zip(self._result.reasons, counts[1:], strict=True) if n}
        ran = list(self._result.plugins)
        while ran and ran[-1].plugin not in rejecting:
            ran.pop()
        return filter_pb2.FilterResult(reasons=self._result.reasons, plugins=ran)


class RememberedVerdicts:
    """Filters nodes, and knows what was said of the newest pods that came more than once."""

    def __init__(
        self,
        state: ClusterState,
        policy: PolicyHolder,
        filter_half: FilterHalf,
        equal_pods: EqualPods,
        *,
        limit: int,
    ) -> None:
        """Remember pods with at most *limit* different signatures."""
        self._state = state
        self._policy = policy
        self._half = filter_half
        self._store: Store[KnownVerdicts] = Store(policy, filter_half.pool, equal_pods, limit)

    async def run(self, subject: Subject) -> Filtered:
        """Return the outcome for the subject's nodes.

        Raises:
            CallFailedError: The filter service fails, does not answer in time, or answers nonsense.
        """
        known = self._known(subject)
        if known is None:
            return await self._half.run(subject)
        lookup = self._half.lookup
        usual = lookup.usual(subject.names)
        expected = lookup.find(subject.names, None) if usual is None else usual
        source, asked = known.pod, to_ask(subject, known.codes, expected, self._state)
        if asked is subject or known.has_failed:
            whole = await self._half.run(subject)
            known.learn(subject, whole)
            return whole
        said = None
        if asked is not None:
            said = await self._said(asked, known)
            if said is None or not known.learn(subject, said):
                # Which nodes plugins are asked about depends on all that came before.
                return await self._half.run(subject)
        found = lookup.find(subject.names, None)
        if usual is not None:
            self._half.metrics.usual(right=found.bitmap == usual.bitmap)
        if len(known.codes.stale(found)):  # it changed meanwhile, or these are others
            return await self._half.run(subject)
        told = self._half.tell(subject, known.verdicts(found), self._state.generation)
        remembered = found.count - (found.common(said.found) if said else 0)
        note_memory(told.record, source, remembered, said.record if said else None)
        self._half.metrics.remembered_half("filter", whole=said is None)
        return told

    async def _said(self, asked: Subject, known: KnownVerdicts) -> Filtered | None:
        """Return what replicas say of some nodes; None if it fails, be it for nodes of others."""
        self._half.lookup.find(asked.names, None, is_part=True)
        try:
            return await self._half.run(asked)
        except CallFailedError:
            known.has_failed, known.codes.ahead = True, 0
            return None

    def _known(self, subject: Subject) -> KnownVerdicts | None:
        dependencies, profile = self._policy.dependencies, subject.pod.spec.scheduler_name
        if profile not in dependencies.local_filters:
            return None
        signature = dependencies.filter_signatures[profile]
        compares = profile in dependencies.comparing_filters
        return self._store.known(
            subject, signature, lambda: KnownVerdicts(self._state, compares_manifests=compares)
        )
