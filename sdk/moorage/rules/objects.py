"""Which objects of a kind a plugin reads: decided here as the API server does it.

Called by `moorage.testing`, and for its mistakes when a plugin's class is made.
"""

from collections.abc import Mapping
from typing import Any

from moorage.models import ObjectKind
from moorage.rules.fields import parse_field_selector
from moorage.rules.labels import parse_label_selector


def check_kind(kind: ObjectKind) -> None:
    """Read the selectors of a kind.

    Raises:
        SelectorError: One of them is none; the message has the place of the mistake.
    """
    parse_label_selector(kind.label_selector)
    parse_field_selector(kind.field_selector)


def selects_object(kind: ObjectKind, manifest: Mapping[str, Any]) -> bool:
    """Return whether an object of the kind is one of those that are meant.

    Args:
        kind: The kind, with a namespace and selectors perhaps.
        manifest: The object as the API server has it.

    Raises:
        SelectorError: A selector of the kind is none.
    """
    metadata = manifest.get("metadata") or {}
    if kind.namespace and metadata.get("namespace", "") != kind.namespace:
        return False
    if not parse_label_selector(kind.label_selector)(metadata.get("labels") or {}):
        return False
    return parse_field_selector(kind.field_selector)(lambda path: _field(manifest, path))


def _field(manifest: Mapping[str, Any], path: str) -> str:
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
