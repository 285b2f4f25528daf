"""Decide what label, node and field selectors match.

Plugins call this for selectors that objects carry, the embedded API server and the command line for
selectors that people write (`-l app=web,tier notin (db)`, `--field-selector spec.nodeName=n1`).
"""

from moorage.rules.errors import SelectorError
from moorage.rules.fields import FieldMatcher, parse_field_selector
from moorage.rules.labels import LabelMatcher, parse_label_selector
from moorage.rules.nodes import (
    matches_labels,
    matches_node_selector,
    matches_node_selector_term,
    matches_requirement,
)
from moorage.rules.objects import check_kind, selects_object
from moorage.rules.pods import selects_namespace, selects_pod

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
