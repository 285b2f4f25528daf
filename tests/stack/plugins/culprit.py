"""Ends its process, as a plugin with broken native code does."""

import os
import signal

from moorage import FilterPlugin, Node, Pod, ScorePlugin


class Culprit(FilterPlugin, ScorePlugin):
    """Does it for pods with a label, which says in which half of a cycle."""

    def filter_node(self, pod: Pod, node: Node) -> None:
        """Let every node pass, if the process goes on."""
        if "ends-filter" in pod.labels:
            os.kill(os.getpid(), signal.SIGSEGV)

    def score_node(self, pod: Pod, node: Node) -> float:
        """Like all nodes equally, if the process goes on."""
        if "ends-scorer" in pod.labels:
            os._exit(3)
        return 50.0
