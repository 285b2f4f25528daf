"""Reads what a request selects: its flags and numbers, and its label and field selectors."""

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.rules import (
    FieldMatcher,
    LabelMatcher,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from sandbox.apiserver.errors import bad_request
from sandbox.apiserver.resources.resource import Object, Resource, value_at


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a query parameter is on: present, and neither 0 nor false."""
    return query.get(name, "false").lower() not in ("0", "false")


def whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    """Return a query parameter that is a number and not negative.

    Raises:
        StatusError: 400.
    """
    text = query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'{name}: "{text}" is not a whole number')
    return int(text)


_ALWAYS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selectors, and the namespace if one is meant."""

    resource: Resource
    namespace: str | None
    labels: LabelMatcher | None = None
    fields: FieldMatcher | None = None

    @property
    def is_all(self) -> bool:
        """Whether every object of the collection (and namespace) is selected."""
        return self.labels is None and self.fields is None

    def matches(self, obj: Object) -> bool:
        """Return whether the selectors and the namespace match a stored object."""
        metadata = obj["metadata"]
        if self.namespace is not None and metadata.get("namespace", "") != self.namespace:
            return False
        if self.labels and not self.labels(metadata.get("labels") or {}):
            return False
        return not self.fields or self.fields(lambda path: self._field(obj, path))

    def _field(self, obj: Object, path: str) -> str:
        view = self.resource.view
        value = value_at(view.show(obj) if view else obj, path)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, dict):
            value = value.get("component")  # of an event, field "source"
        return str(value) if value is not None else self.resource.selectable.get(path, "")


def select(resource: Resource, namespace: str | None, query: Mapping[str, str]) -> Selection:
    """Read labelSelector and fieldSelector.

    Raises:
        StatusError: 400, one cannot be parsed or names a field that cannot be selected on.
    """
    try:
        labels = parse_label_selector(query.get("labelSelector", ""))
        fields = parse_field_selector(query.get("fieldSelector", ""))
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from error
    for path in sorted(fields.fields):
        if path not in _ALWAYS and path not in resource.selectable:
            raise bad_request(f"field label not supported: {path}")
    return Selection(
        resource=resource,
        namespace=namespace,
        labels=labels if labels.requirements else None,
        fields=fields if fields.terms else None,
    )
