"""Scores a number or time on the nodes, like NodeMetadata of the project scheduler-plugins."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import numpy as np

from moorage import MAX_SCORE, Arguments, Meta, Nodes, Pod, ScorePlugin, Scores

INVALID: Final = -(2.0**63)
"""The raw score of nodes without a valid value."""

STRATEGIES: Final[Mapping[str, tuple[str, ...]]] = {
    "Number": ("Highest", "Lowest"),
    "Timestamp": ("Newest", "Oldest"),
}


class NodeMetadata(ScorePlugin):
    """Prefers nodes by a number or a time in one of their labels or annotations, such as a price.

    Numbers are cut to whole ones, times to seconds.
    """

    class Args(Arguments):
        """What to read, and what is good.

        Attributes:
            metadata_key: The key of the label or annotation.
            metadata_source: Where it stands.
            metadata_type: What it is.
            scoring_strategy: Highest or Lowest for numbers, Newest or Oldest for timestamps.
            timestamp_format: How times are written, as Python's strptime has it; without a zone
                they are UTC. By default RFC 3339.
            default_value: The value of nodes without the label or annotation; by default they
                have none, and 0 points.
        """

        metadata_key: Annotated[str, Meta(min_length=1)]
        metadata_source: Literal["Label", "Annotation"]
        metadata_type: Literal["Number", "Timestamp"] = "Number"
        scoring_strategy: Literal["Highest", "Lowest", "Newest", "Oldest"] = "Highest"
        timestamp_format: str = ""
        default_value: str = ""

        def __post_init__(self) -> None:
            allowed = STRATEGIES[self.metadata_type]
            if self.scoring_strategy not in allowed:
                raise ValueError(
                    f"scoringStrategy of a {self.metadata_type} must be {' or '.join(allowed)}"
                )

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the value of each node, negative if less is better."""
        args = self.args
        of = nodes.label if args.metadata_source == "Label" else nodes.annotation
        read = _number if args.metadata_type == "Number" else _seconds(args.timestamp_format)
        sign = -1 if args.scoring_strategy in ("Lowest", "Oldest") else 1

        def value(text: str | None) -> float:
            try:
                return sign * float(int(read(args.default_value if text is None else text)))
            except (ValueError, OverflowError):
                return INVALID

        scores: Scores = of(args.metadata_key).map(value)
        return scores

    def normalize(self, scores: Scores) -> Scores:
        """Spread valid values over 1..100, the best at 100; all 1 if they are the same."""
        valid = scores != INVALID
        if not valid.any():
            return np.zeros_like(scores)
        lowest = scores[valid].min()
        span = max(scores[valid].max() - lowest, 1)
        return np.where(valid, (scores - lowest) * (MAX_SCORE - 1) // span + 1, 0)


def _number(text: str) -> float:
    if "_" in text or text != text.strip():  # Python would take them, Go does not
        raise ValueError(text)
    return float(text)


def _seconds(form: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        time = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

    return read
