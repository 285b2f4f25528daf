"""Rules across pods that kube-scheduler does not know: only Moorage can keep them."""

import os
import re
import signal
import threading
from typing import ClassVar

from moorage import SKIP, Arguments, FilterPlugin, Node, Nodes, Pod, Preparation, Rejection

EXCLUSIVE = "chaos/exclusive"
LIMITED = "chaos/limited"
MOST_LIMITED = 1
POISON = "chaos/poison"


class ExclusiveNode(FilterPlugin):
    """Keeps pods with the label off nodes that have another such pod, by claims."""

    pod_fields: ClassVar = ("metadata.labels",)

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return None if EXCLUSIVE in pod.labels else SKIP

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        taken = any(EXCLUSIVE in other.labels and other.uid != pod.uid for other in node.pods)
        return Rejection("node has an exclusive pod", unresolvable=False) if taken else None

    def wants_claim(self, pod: Pod) -> bool:
        return EXCLUSIVE in pod.labels


class AtMost(FilterPlugin):
    """Allows one pod with the label on a node; without claims, so that binds race with cycles."""

    pod_fields: ClassVar = ("metadata.labels",)

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return None if LIMITED in pod.labels else SKIP

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        count = sum(LIMITED in other.labels and other.uid != pod.uid for other in node.pods)
        full = count >= MOST_LIMITED
        return Rejection("node has its limited pods", unresolvable=False) if full else None


def _run_for_ever() -> None:
    while True:
        pass


class Poison(FilterPlugin):
    """Does to its process, or to the time of all others, what a label of a pod says.

    In a shadow its arguments say it, for all pods.
    """

    class Args(Arguments):
        deed: str = ""

    pod_fields: ClassVar = ("metadata.labels",)

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return None if self.args.deed or POISON in pod.labels else SKIP

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        deed = self.args.deed or pod.labels[POISON]
        if deed == "raise":
            raise RuntimeError(deed)
        if deed == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if deed == "exit":
            os._exit(1)
        if deed == "regex":
            re.fullmatch("(a+)+", "a" * 60 + "b")
        if deed == "memory":
            b"x" * (1 << 30)
        if deed == "thread":
            threading.Thread(target=_run_for_ever, daemon=True).start()
        while deed == "loop":
            pass
        return None
