"""Writes onto a pod why it is where it is, in the same request that binds it.

Not enabled by default: every pod, in the API server and in every client that watches pods, grows by
some hundred bytes that no two pods share.
"""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from moorage import Arguments, Binding, BindPlugin, DecisionSummary, Meta, Refusal, ScoredNode

KEY = "moorage.io/decision"

LONGEST_REASON = 300
"""Characters of the reason that are written."""


class DecisionAnnotation(BindPlugin):
    """Annotates pods with the decision: node, runner-up, why, policy revision; less than 1 KiB.

    A pod whose decision the gateway no longer has, after a restart, gets no annotation.
    """

    class Args(Arguments):
        """How much is written.

        Attributes:
            plugins: How many plugins to list with their scores, the most decisive first.
            max_bytes: The longest annotation; plugins are left out first, then the reason, then the
                runner-up.
        """

        plugins: Annotated[int, Meta(ge=0, le=20)] = 3
        max_bytes: Annotated[int, Meta(ge=1, le=1023)] = 1023

    reads_pod = False

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Add the annotation; refuses nothing."""
        if binding.decision is not None and (text := self._text(binding.decision)):
            binding.annotate(KEY, text)
        return None

    def _text(self, decision: DecisionSummary) -> str:
        texts = map(msgspec.json.encode, _shorter(decision, self.args.plugins))
        return next((text for text in texts if len(text) <= self.args.max_bytes), b"").decode()


def _shorter(decision: DecisionSummary, plugins: int) -> Iterator[DecisionSummary]:
    """Yield the decision with at most so many plugins, then with less and less of the rest."""
    winner, second = decision.winner, decision.runner_up
    for count in range(plugins, -1, -1):
        decision = msgspec.structs.replace(
            decision,
            winner=_with_plugins(winner, count),
            runner_up=_with_plugins(second, 0) if second else None,
            reason=_cut(decision.reason),
        )
        yield decision
    yield msgspec.structs.replace(decision, reason="")
    yield msgspec.structs.replace(decision, reason="", runner_up=None)
    yield DecisionSummary(winner=ScoredNode(node=winner.node))


def _cut(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 3]}..."


def _with_plugins(node: ScoredNode, count: int) -> ScoredNode:
    kept = {name: round(score, 1) for name, score in list(node.plugins.items())[:count]}
    score = None if node.score is None else round(node.score, 1)
    return ScoredNode(node=node.node, score=score, plugins=kept)
