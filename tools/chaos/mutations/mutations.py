"""The safeguards that a campaign must miss, and how each is taken out."""

from collections.abc import Sequence
from dataclasses import dataclass

from tools.chaos.mutations.edits import Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One safeguard that is taken out.

    Attributes:
        safeguard: Which one.
        row: The row of the campaign's table that must fail then, as an expression.
        edits: What is changed.
    """

    safeguard: str
    row: str
    edits: Sequence[Edit]


MUTATIONS = (
    Mutation(
        safeguard="uid precondition: a Binding names the pod's uid",
        row="nearly as slow",
        edits=[
            Edit(
                file="services/binder/cluster.py",
                old='"namespace": binding.namespace, "uid": binding.uid}',
                new='"namespace": binding.namespace}',
            )
        ],
    ),
    Mutation(
        safeguard="epoch: the binder refuses binds of earlier terms",
        row="dead gateway",
        edits=[
            Edit(
                file="services/binder/binding/fence.py",
                old="if 0 < epoch < self.epoch:",
                new="if 0 < epoch < 0:",
            )
        ],
    ),
    Mutation(
        safeguard="barrier: a new term waits for binds under way, and learns what was written",
        row="kill -9 gateway",
        edits=[
            Edit(
                file="services/binder/binding/fence.py",
                old="await self._settle(epoch)",
                new="await asyncio.sleep(0)",
            ),
            Edit(
                file="services/binder/binding/fence.py",
                old="self._recall() if is_held",
                new="([], self._recall()[1]) if is_held",
            ),
        ],
    ),
    Mutation(
        safeguard="re-check: filter plugins are asked again at the bind",
        row="latency",
        edits=[
            Edit(
                file="gateway/cycle/bind_check.py",
                old="cause = self._cause(pod, call, decision, epoch) if pod is not None else None",
                new="cause = None",
            )
        ],
    ),
    Mutation(
        safeguard="digest: answers of two versions of a plugin are never joined",
        row="two versions",
        edits=[
            Edit(
                file="gateway/decisions/from_protobuf.py",
                old='versions = sorted(f"{plugin.name}={plugin.version}" for plugin in plugins)',
                new='versions = sorted(f"{plugin.name}" for plugin in plugins)',
            )
        ],
    ),
    Mutation(
        safeguard="re-sync: a watch that has expired is followed by a full list",
        row="watches cut",
        edits=[
            Edit(
                file="gateway/cluster/watch/reflector.py",
                old="        self._mirror.swap(full)\n",
                new="        if not self.synced.is_set():\n            self._mirror.swap(full)\n",
            )
        ],
    ),
)
