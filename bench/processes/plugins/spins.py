"""A score that takes its time for each node, for `bench.growth.replicas`."""

import time

from moorage import Arguments, Node, Pod, ScorePlugin


class Spins(ScorePlugin):
    """Prefers nodes by the length of their names, and spends processor time on it."""

    class Args(Arguments):
        """Arguments.

        Attributes:
            microseconds: For each node, beside what the call itself takes.
        """

        microseconds: float = 1.0

    def score_node(self, pod: Pod, node: Node) -> float:
        """Spin, then score."""
        end = time.perf_counter() + self.args.microseconds / 1e6
        while time.perf_counter() < end:
            pass
        return float(len(node.name))
