"""State messages of a session, applied to a replica; afterwards it must be as if built at once."""

from contextlib import suppress
from random import Random

from moorage.snapshot import Snapshot
from moorage.v1 import types_pb2 as pb
from moorage_host.plugins import Replica
from moorage_host.rpc.state import MISTAKES, apply_state
from tools.fuzz.targets.target import Target, mutated_messages, require, unpacked

_ROWS = 4096


class Deltas(Target):
    """A series of State messages, which ends with one that is refused."""

    name = "deltas"
    share = 20
    seconds = 1e-3
    tokens = ('{"metadata":{"name":"n1"', '"allocatable":{"cpu":"', '"labels":{', '"spec":{')
    longest = 2048

    async def case(self, data: bytes) -> None:
        replica = Replica(max_nodes=_ROWS)
        for message in unpacked(data):
            state = pb.State()
            try:
                state.ParseFromString(message)
            except Exception:  # noqa: BLE001 - gRPC's, before anything of Moorage's
                continue
            try:
                await apply_state(replica, state)
            except MISTAKES:
                break
            replica.generation = 1
        require(replica.snapshot.capacity <= _ROWS, "more rows than allowed")
        with suppress(ValueError):  # a refused or unfinished series may leave names twice
            replica.snapshot.check_names()
            _compare(replica.snapshot)

    def mutated(self, data: bytes, random: Random) -> bytes | None:
        return mutated_messages(data, random, pb.State)


def _compare(snapshot: Snapshot) -> None:
    built = Snapshot(_ROWS)
    nodes = list(snapshot.nodes())
    for node in nodes:
        built.set_node(node.row, node.manifest)
        for pod in node.pods:
            built.place_pod(node.row, pod)
    require(len(built) == len(snapshot), "other nodes than those that are there")
    require(built.pod_count == snapshot.pod_count, "other pods than those that are there")
    resources = {r for node in nodes for r in (*node.allocatable, *node.requested)} | {"x"}
    left, right = snapshot.nodes(), built.nodes()
    for resource in sorted(resources):
        for column in ("allocatable", "requested", "nonzero_requested"):
            some, others = (getattr(each, column)(resource).tolist() for each in (left, right))
            require(some == others, f"other amounts {column}", (resource, some, others))
    for some, other in zip(left, right, strict=True):
        uids = [sorted(pod.uid for pod in each.pods) for each in (some, other)]
        require(uids[0] == uids[1], "other pods of a node", uids)
        require(some.name == other.name and left.names == right.names, "other names")
    require(left.taints().values is not None, "no taints")
