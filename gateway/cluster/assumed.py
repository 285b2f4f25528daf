"""Pods that count as placed on a node before the watch shows that; a part of the cluster state.

A claim is taken in a cycle, before the bind; an assumption begins with the bind.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from moorage.models import Pod


@dataclass(slots=True)
class Assumption:
    """A pod as it will be on its node, until a time on the clock."""

    pod: Pod
    expires: float = float("inf")
    is_claim: bool = False
    failure: str = ""  # the attempt before that of the claim

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.pod.spec.node_name


@dataclass(slots=True, kw_only=True)
class AssumedPods:
    """Claimed and assumed pods by uid.

    Attributes:
        assumed_ttl: Seconds that a pod stays assumed after its bind until it is seen bound.
        claim_ttl: Seconds that a pod keeps a claimed node while no bind comes.
        clock: A monotonic clock in seconds.
    """

    assumed_ttl: float
    claim_ttl: float
    clock: Callable[[], float]
    _by_uid: dict[str, Assumption] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many there are, and how many of them are claims."""
        claims = sum(assumption.is_claim for assumption in self._by_uid.values())
        return {"assumed_pods": len(self._by_uid), "claims": claims}

    def get(self, uid: str) -> Assumption | None:
        """Return where a pod is assumed."""
        return self._by_uid.get(uid)

    def pop(self, uid: str) -> Assumption | None:
        """Forget a pod; return where it was assumed."""
        return self._by_uid.pop(uid, None)

    def claim(self, pod: Pod, node: str, failure: str) -> None:
        """Begin to count *pod* on *node*, until a bind comes, its attempt fails, or it is too late.

        *failure* is the failed attempt that the pod shows already.
        """
        expires = self.clock() + self.claim_ttl
        self._by_uid[pod.uid] = Assumption(
            _placed(pod, node), expires, is_claim=True, failure=failure
        )

    def claims(self) -> list[str]:
        """Return the uids of claims."""
        return [uid for uid, assumption in self._by_uid.items() if assumption.is_claim]

    def assume(self, pod: Pod, node: str) -> bool:
        """Count *pod* on *node* while its bind is under way; return whether that is a change."""
        before, now = self._by_uid.get(pod.uid), Assumption(_placed(pod, node))
        self._by_uid[pod.uid] = now
        return before is None or before.pod != now.pod

    def confirm(self, uid: str) -> None:
        """Note that an assumed pod is bound, so that its assumption may expire."""
        assumption = self._by_uid.get(uid)
        if assumption is not None:
            assumption.expires = self.clock() + self.assumed_ttl

    def late(self, heard: float) -> list[str]:
        """Return the uids of claims and assumed pods whose time is over.

        That of assumed pods ends when the watch, *heard* last at that time, would have shown the
        bind: while it is silent, nothing is known about them.
        """
        now = self.clock()
        return [
            uid
            for uid, assumption in self._by_uid.items()
            if assumption.expires <= (now if assumption.is_claim else heard)
        ]


def _placed(pod: Pod, node: str) -> Pod:
    """Return the pod as the API server will show it once it is bound."""
    spec = msgspec.structs.replace(pod.spec, node_name=node)
    return msgspec.structs.replace(pod, spec=spec)
