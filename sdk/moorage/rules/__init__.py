"""Decide what label, node and field selectors match.

Plugins call this for selectors that objects carry, the embedded API server and the command line for
selectors that people write (`-l app=web,tier notin (db)`, `--field-selector spec.nodeName=n1`).
"""

from moorage.rules.nodes import (
    matches_labels,
    matches_node_selector,
    matches_node_selector_term,
    matches_requirement,
    selects_namespace,
    selects_pod,
)
from moorage.rules.selectors import (
    FieldMatcher,
    LabelMatcher,
    SelectorError,
    check_kind,
    parse_field_selector,
    parse_label_selector,
    selects_object,
)

__all__ = [
    "FieldMatcher",
    "LabelMatcher",
    "SelectorError",
    "check_kind",
    "matches_labels",
    "matches_node_selector",
    "matches_node_selector_term",
    "matches_requirement",
    "parse_field_selector",
    "parse_label_selector",
    "selects_namespace",
    "selects_object",
    "selects_pod",
]
