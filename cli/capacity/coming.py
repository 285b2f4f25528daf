"""Which requests a node already comes for: the autoscaler's Events say so, or its NodeClaims.

A request has to be closed before its node is ready: from then on the autoscaler would count a pod
that gets on the node, and its placeholder as well. Karpenter reports few Events at a time, but its
NodeClaims say how much they were made for. Requests that are older take that in turn.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cli.capacity.autoscalers import EXISTING, Autoscaler, claimed_node
from cli.capacity.cluster import ClusterView, node_of
from cli.capacity.nodes import FreeCapacity, NodeTracker
from cli.capacity.placeholder import Manifest, Placeholder, moment
from gateway.decisions.capacity import ASKED, COMING
from moorage.models import NodeManifest, Pod


class IncomingNode(NamedTuple):
    """A node that an autoscaler brings: its NodeClaim, and its name once it has one."""

    claim: str = ""
    node: str = ""

    def __str__(self) -> str:
        return f", NodeClaim {self.claim}" if self.claim else ""


class _NodeClaim(NamedTuple):
    """A NodeClaim: what its node has room for, and what of that the claim was made for."""

    created: float
    room: FreeCapacity
    meant: FreeCapacity


class IncomingNodes:
    """What comes for which request."""

    def __init__(self, view: ClusterView, autoscaler: Autoscaler, nodes: NodeTracker) -> None:
        self._view = view
        self._autoscaler = autoscaler
        self._nodes = nodes
        self._coming: Mapping[str, IncomingNode] = {}

    def of(self, placeholder: Placeholder) -> IncomingNode | None:
        """Return what comes for a request; None for nothing, or for what has come in vain."""
        coming = self._coming.get(placeholder.uid)
        return None if coming is not None and coming.node in placeholder.nodes else coming

    def node_for(self, placeholder: Placeholder, pod: Pod) -> NodeManifest | None:
        """Return the node that has come for a request; None if none has, or not yet.

        If nothing is known to come for it, that is a new one with room for it.
        """
        coming = self.of(placeholder)
        if coming is not None and coming.claim:
            return self._view.nodes.get(coming.node)
        for name, node in self._view.nodes.items():
            is_new = not self._nodes.is_known(node) and EXISTING not in node.metadata.labels
            came = moment(node.metadata.creation_timestamp)
            if is_new and name not in placeholder.nodes and came >= placeholder.created:
                taken = [*self._nodes.taken(name), *self._promised(name)]
                if FreeCapacity(node, taken).takes(pod):
                    return node
        return None

    def _promised(self, name: str) -> Iterator[Mapping[str, int]]:
        """Yield what pods request whose open requests a node comes for."""
        for uid, each in self._view.placeholders.items():
            coming, waiting = self.of(each), self._view.waiting.get(uid)
            if each.is_open and coming is not None and coming.node == name and waiting is not None:
                yield waiting.pod.requests

    async def note(self) -> None:
        """Read what comes now."""
        notes = await self._view.reported(self._autoscaler.brings)
        if not self._autoscaler.marks_nodes:
            self._coming = dict.fromkeys(notes, IncomingNode())
            return
        manifests = {each["metadata"]["name"]: each for each in await self._view.node_claims()}
        coming = {name: IncomingNode(name, node_of(each)) for name, each in manifests.items()}
        left = {
            name: claim
            for name, each in manifests.items()
            if (claim := self._claim(each, coming[name].node)) is not None
        }
        rooms = {name: self._room(each.node) for name, each in coming.items() if name not in left}
        rooms |= {name: claim.room for name, claim in left.items()}
        found: dict[str, IncomingNode] = {}

        def take(uid: str, name: str) -> None:
            found[uid] = coming[name]
            rooms[name].put(requests[uid][1].requests)
            if (claim := left.get(name)) is not None:
                claim.meant.put(requests[uid][1].requests)

        placeholders = sorted(self._view.placeholders.values(), key=lambda each: each.created)
        requests = {
            each.uid: (each, waiting.pod)
            for each in placeholders
            if each.reason in (ASKED, COMING)
            and (waiting := self._view.waiting.get(each.pod_uid)) is not None
        }
        for uid, (placeholder, _) in requests.items():  # as it was found before
            before = self.of(placeholder)
            if before is not None and before.claim in coming:
                take(uid, before.claim)
        for uid, (placeholder, pod) in requests.items():
            name = claim_of(notes.get(uid, ""))
            if uid in found or name not in coming or coming[name].node in placeholder.nodes:
                continue
            # Karpenter also names one that is full by now: it counts open requests only.
            if rooms[name].takes(pod):
                take(uid, name)
        for uid, (placeholder, pod) in requests.items():
            for name, claim in left.items() if uid not in found else ():
                is_new = claim.created >= placeholder.created
                if is_new and coming[name].node not in placeholder.nodes and claim.meant.takes(pod):
                    take(uid, name)
                    break
        self._coming = found

    def _room(self, name: str) -> FreeCapacity:
        """Return what a node that exists has left, as far as requests took of it."""
        return FreeCapacity(self._view.nodes[name], self._nodes.taken(name))

    def _claim(self, manifest: Manifest, name: str) -> _NodeClaim | None:
        """Return what a NodeClaim has left; None if its node is one that exists by now."""
        node = self._view.nodes.get(name)
        if node is not None and (self._nodes.is_known(node) or EXISTING in node.metadata.labels):
            return None
        taken = self._nodes.taken(name)
        return _NodeClaim(
            moment(manifest["metadata"].get("creationTimestamp")),
            FreeCapacity(claimed_node(manifest), taken),
            FreeCapacity(claimed_node(manifest, meant=True), taken),
        )


def claim_of(note: str) -> str:
    """Return the NodeClaim that an Event of Karpenter names, "" for none."""
    return note.partition("nodeclaim/")[2].partition(",")[0].strip()
