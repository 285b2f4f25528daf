"""Scores a number or time on the nodes, like NodeMetadata of the project scheduler-plugins."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import numpy as np
from msgspec.structs import astuple

from moorage import MAX_SCORE, Arguments, Meta, Nodes, Pod, Scope, ScorePlugin, Scores
from moorage.models import NodeManifest

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

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ()

    class Args(Arguments):
        """What to read, and what is good.

        Attributes:
            metadata_key: The key of the label or annotation.
            metadata_source: Whether the key is of a label or an annotation.
            metadata_type: What it is.
            scoring_strategy: Highest or Lowest for numbers, Newest or Oldest for timestamps.
            timestamp_format: The format of times, as Python's strptime; UTC without a zone. By
                default RFC 3339.
            default_value: The value of nodes without the label or annotation; by default they get 0
                points.
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
        sign = -1 if self.args.scoring_strategy in ("Lowest", "Oldest") else 1
        values = nodes.encoded(("NodeMetadata", *astuple(self.args)), self._read)
        scores: Scores = values.map(lambda value: INVALID if value is None else sign * value)
        return scores

    def normalize(self, scores: Scores) -> Scores:
        """Spread valid values over 1..100, the best at 100; all 1 if they are the same."""
        valid = scores != INVALID
        if not valid.any():
            return np.zeros_like(scores)
        lowest = scores[valid].min()
        span = max(scores[valid].max() - lowest, 1)
        return np.where(valid, (scores - lowest) * (MAX_SCORE - 1) // span + 1, 0)

    def _read(self, node: NodeManifest) -> float | None:
        """Return the value of a node; it is asked again only when the node changes."""
        args, metadata = self.args, node.metadata
        of = metadata.labels if args.metadata_source == "Label" else metadata.annotations
        text = of.get(args.metadata_key, args.default_value)
        try:
            if args.metadata_type == "Number":
                return float(int(_number(text)))
            return float(int(_seconds(text, args.timestamp_format)))
        except (ValueError, OverflowError):
            return None


def _number(text: str) -> float:
    if "_" in text or text != text.strip():  # Python would take them, Go does not
        raise ValueError(text)
    return float(text)


def _seconds(text: str, form: str) -> float:
    time = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
