"""What authors override, by the class of `moorage.plugin` that has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What authors override in a kind of plugin.

    Attributes:
        sync: Methods that are not `async`.
        coroutines: Methods that are `async`.
        declarations: Class attributes.
        one_of: Of these methods a plugin overrides exactly one; the last one calls the first.
        any_of: Of these methods a plugin overrides at least one.
    """

    sync: tuple[str, ...] = ()
    coroutines: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that can be overridden."""
        return self.sync + self.coroutines + self.declarations


HOOKS: Final[Mapping[str, Hooks]] = {
    "Plugin": Hooks(
        coroutines=("start", "stop", "prepare"),
        declarations=(
            "name",
            "reads",
            "depends_on",
            "reads_placements",
            "pod_fields",
            "managed_resources",
            "time_budget",
            "Args",
        ),
    ),
    "FilterPlugin": Hooks(
        sync=("filter_node", "filter", "wants_claim"), one_of=("filter_node", "filter")
    ),
    "ScorePlugin": Hooks(
        sync=("score_node", "score", "normalize"),
        declarations=("normalization", "weight"),
        one_of=("score_node", "score"),
    ),
    "BindPlugin": Hooks(
        sync=("permit_key",),
        coroutines=("permit", "pre_bind", "post_bind"),
        declarations=("reads_pod", "reads_snapshot"),
        any_of=("permit", "pre_bind", "post_bind"),
    ),
}

OTHER_NAMES: Final[Mapping[str, str]] = {
    "prefilter": "prepare",
    "prescore": "prepare",
    "reserve": "wants_claim",
    "normalizescore": "normalize",
    "arguments": "Args",
}
"""What kube-scheduler calls some hooks, or an author might."""
