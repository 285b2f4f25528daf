"""What a list or a watch selects, and lists, whole or in pages.

The pages of one list show one resource version.
"""

import itertools
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.rules import (
    FieldMatcher,
    LabelMatcher,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from sandbox.apiserver.errors import StatusError, bad_request, expired
from sandbox.apiserver.resources.table import ApiResource, Object, value_at
from sandbox.apiserver.store.store import Item, Store


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a query parameter is on: present, and neither 0 nor false."""
    return query.get(name, "false").lower() not in ("0", "false")


def whole_number(query: Mapping[str, str], name: str) -> int:
    """Return a query parameter that is a number and not negative.

    Raises:
        StatusError: 400.
    """
    text = query.get(name) or "0"
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'{name}: "{text}" is not a whole number')
    return int(text)


_ALWAYS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selectors, and the namespace if one is meant."""

    resource: ApiResource
    namespace: str | None
    labels: LabelMatcher | None = None
    fields: FieldMatcher | None = None

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


def select(resource: ApiResource, namespace: str | None, query: Mapping[str, str]) -> Selection:
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


def selected(store: Store, selection: Selection) -> list[Item]:
    """Return the selected objects in the order of namespace and name."""
    items = store.collection(selection.resource.stored_as).list(selection.namespace)
    if selection.labels is None and selection.fields is None:
        return items
    return [item for item in items if selection.matches(item.object)]


_TOKEN = re.compile(r"\d+-\d+")
"""What a token is that was once given."""


@dataclass(frozen=True, slots=True)
class _Rest:
    items: Sequence[Item]
    revision: int
    path: tuple[str, str | None]


class Pages:
    """Makes lists and keeps the rest of those that were not read to the end."""

    def __init__(self, store: Store, limit: int) -> None:
        self._store = store
        self._limit = limit
        self._rests: OrderedDict[str, _Rest] = OrderedDict()
        self._tokens = itertools.count(1)

    def list(self, selection: Selection, query: Mapping[str, str]) -> tuple[Sequence[Item], Object]:
        """Return the objects that limit, continue and resourceVersion ask for, and list metadata.

        Raises:
            StatusError: 400, 410 (the token is too old) or 504 (the version is in the future).
        """
        limit, token = whole_number(query, "limit"), query.get("continue", "")
        path = (selection.resource.stored_as, selection.namespace)
        if token:
            rest = self._resume(token, path, query)
        else:
            self._check_version(query)
            rest = _Rest(selected(self._store, selection), self._store.revision, path)
        metadata: Object = {"resourceVersion": str(rest.revision)}
        if not limit or len(rest.items) <= limit:
            return rest.items, metadata
        left = rest.items[limit:]
        token = f"{rest.revision}-{next(self._tokens)}"
        self._rests[token] = replace(rest, items=left)
        if len(self._rests) > self._limit:
            self._rests.popitem(last=False)
        return rest.items[:limit], metadata | {"continue": token, "remainingItemCount": len(left)}

    def _resume(self, token: str, path: tuple[str, str | None], query: Mapping[str, str]) -> _Rest:
        if whole_number(query, "resourceVersion"):
            raise bad_request("specifying resource version is not allowed when using continue")
        rest = self._rests.get(token)
        if rest is None and not _TOKEN.fullmatch(token):
            raise bad_request("invalid continue token: continue key is not valid")
        if rest is None:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        if rest.path != path:
            raise bad_request("continue key is not valid: it belongs to another list")
        return rest

    def _check_version(self, query: Mapping[str, str]) -> None:
        wanted, present = whole_number(query, "resourceVersion"), self._store.revision
        if query.get("resourceVersionMatch") == "Exact" and wanted < present:
            raise expired(f"The resourceVersion for the provided list is too old: {wanted}")
        if wanted > present:
            message = f"Too large resource version: {wanted}, current: {present}"
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            details = {"causes": [cause], "retryAfterSeconds": 1}
            raise StatusError(504, message, details=details)
