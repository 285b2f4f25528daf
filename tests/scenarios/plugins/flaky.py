"""Fails in the background, and for pods that ask for it."""

from moorage import Node, Pod, ScorePlugin


class Flaky(ScorePlugin):
    """Asks a server that does not answer; fails for pods with the label unlucky."""

    async def start(self) -> None:
        self.background(self._ask)

    async def _ask(self) -> None:
        raise ConnectionError("the server does not answer")

    def score_node(self, pod: Pod, node: Node) -> float:
        if "unlucky" in pod.labels:
            raise RuntimeError("an unlucky pod")
        return 0.0
