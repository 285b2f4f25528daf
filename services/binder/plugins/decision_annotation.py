"""Writes onto a pod why it is where it is, in the same request that binds it.

Not enabled by default: every pod, in the API server and in every client that watches pods, grows by
some hundred bytes that no two pods share.
"""

from typing import Annotated

import msgspec

from moorage import Arguments, Binding, BindPlugin, DecisionSummary, Meta, Refusal, ScoredNode

KEY = "moorage.io/decision"


class DecisionAnnotation(BindPlugin):
    """Annotates pods with the decision: node, runner-up, scores, policy revision, generation.

    A pod whose decision the gateway no longer has, after a restart, gets no annotation.
    """

    class Args(Arguments):
        """How much is written.

        Attributes:
            plugins: How many plugins are written with their scores, those first that counted most.
            max_bytes: How long the annotation may be; it names fewer plugins if it would be longer.
        """

        plugins: Annotated[int, Meta(ge=0, le=20)] = 3
        max_bytes: Annotated[int, Meta(ge=1, le=262144)] = 4096

    reads_pod = False

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Add the annotation; refuses nothing."""
        if binding.decision is not None:
            binding.annotate(KEY, self._text(binding.decision))
        return None

    def _text(self, decision: DecisionSummary) -> str:
        for count in range(self.args.plugins, 0, -1):
            text = msgspec.json.encode(_shortened(decision, count))
            if len(text) <= self.args.max_bytes:
                return text.decode()
        return msgspec.json.encode(_shortened(decision, 0)).decode()


def _shortened(decision: DecisionSummary, count: int) -> DecisionSummary:
    """Keep *count* plugins of the winner, and none of the runner-up."""
    winner, second = decision.winner, decision.runner_up
    return msgspec.structs.replace(
        decision,
        winner=_with_plugins(winner, count),
        runner_up=_with_plugins(second, 0) if second else None,
    )


def _with_plugins(node: ScoredNode, count: int) -> ScoredNode:
    kept = {name: round(score, 1) for name, score in list(node.plugins.items())[:count]}
    score = None if node.score is None else round(node.score, 1)
    return ScoredNode(node=node.node, score=score, plugins=kept)
