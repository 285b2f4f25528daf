"""Mistakes that type checkers must find."""

import moorage
from moorage import (
    Arguments,
    Binding,
    BindPlugin,
    FilterPlugin,
    Node,
    Nodes,
    Pod,
    Rejection,
    ScorePlugin,
)
from moorage.testing import make_node, make_pod, run_filter, run_score


class WrongAnswer(FilterPlugin):
    """Answers with a bool."""

    def filter_node(self, pod: Pod, node: Node) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Answer."""
        return True


class WrongParameters(ScorePlugin):
    """Gets all nodes in the form for one."""

    def score_node(self, pod: Pod, nodes: Nodes) -> float:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Answer."""
        return len(nodes)


class NotAsync(BindPlugin):
    """Is no coroutine."""

    def post_bind(self, binding: Binding) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Act."""


class WithArguments(FilterPlugin):
    """Reads its arguments."""

    class Args(Arguments):
        """Its arguments."""

        limit: float = 80.0

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Misspell them."""
        limit: str = self.args.limit  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
        self.args.limitt  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        node.labels["x"] = limit  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
        return Rejection(limit)


WithArguments.Args(limit="warm")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
WithArguments.Args(unknown=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
run_filter(WithArguments(), make_node(), make_pod())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
run_score(WithArguments(), make_pod())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
make_pod(cpu="1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
moorage.FilterPlugn  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
