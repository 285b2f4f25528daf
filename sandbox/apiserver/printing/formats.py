"""The forms in which objects are answered: whole, as kubectl's Table, or with metadata only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sandbox.apiserver.errors import not_acceptable
from sandbox.apiserver.printing.tables import PARTIAL, table
from sandbox.apiserver.resources.resource import Object, Resource
from sandbox.apiserver.store.store import Change, Item, encode

_GROUP = "meta.k8s.io"


@dataclass(frozen=True, slots=True)
class Format:
    """One form of answers."""

    form: Literal["whole", "table", "partial"] = "whole"
    include: str = "Metadata"
    """How much of each object a Table carries: Metadata, Object or None."""

    def one(self, resource: Resource, item: Item) -> bytes:
        """Write an object."""
        if self.form == "whole" and not resource.view:
            return item.raw
        obj = resource.view.show(item.object) if resource.view else item.object
        if self.form == "table":
            return encode(self._table(resource, [item.object], obj["metadata"]))
        return encode(PARTIAL | {"metadata": obj["metadata"]} if self.form == "partial" else obj)

    def many(self, resource: Resource, items: Iterable[Item], metadata: Object) -> bytes:
        """Write a list with this list metadata."""
        if self.form == "table":
            return encode(self._table(resource, [item.object for item in items], metadata))
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        if self.form == "partial":
            head = {"kind": "PartialObjectMetadataList", "apiVersion": f"{_GROUP}/v1"}
        start = encode(head | {"metadata": metadata})[:-1]
        return start + b',"items":[' + b",".join(self.one(resource, i) for i in items) + b"]}\n"

    def line(self, resource: Resource, kind: str, change: Change) -> bytes:
        """Write a watch event; encoded once for all watchers of the same form."""
        key = (kind, f"{resource.api_version} {self.form} {self.include}")
        line = change.lines.get(key)
        if line is None:
            item = change.item
            if kind == "DELETED" and change.kind != "DELETED" and change.previous:
                item = _stamped(change.previous, item)
            line = change.lines[key] = event(kind, self.one(resource, item))
        return line

    def _table(self, resource: Resource, objects: list[Object], metadata: Object) -> Object:
        head = {k: metadata[k] for k in _LIST_METADATA if k in metadata}
        return table(resource, objects, self.include, head)


_LIST_METADATA = ("resourceVersion", "continue", "remainingItemCount")


def event(kind: str, raw: bytes) -> bytes:
    """Write a watch event around an encoded object."""
    return b'{"type":"' + kind.encode() + b'","object":' + raw.rstrip() + b"}\n"


def negotiate(accept: str, query: Mapping[str, str]) -> Format:
    """Choose the first form of an Accept header that can be produced.

    Raises:
        StatusError: 406.
    """
    for choice in (accept or "*/*").split(","):
        media_type, *rest = (part.strip() for part in choice.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        form = _form(parameters)
        if form:
            return Format(form, query.get("includeObject", "Metadata"))
    raise not_acceptable()


def _form(parameters: dict[str, Any]) -> Literal["whole", "table", "partial"] | None:
    wanted = parameters.get("as", "")
    if not wanted:
        return "whole"
    if parameters.get("g") != _GROUP or parameters.get("v") not in ("v1", "v1beta1"):
        return None
    if wanted == "Table":
        return "table"
    return "partial" if wanted.startswith("PartialObjectMetadata") else None


def _stamped(old: Item, new: Item) -> Item:
    # An object that no longer matches is sent as it last matched, at the version of its change.
    version = {"resourceVersion": str(new.revision)}
    metadata = old.object["metadata"] | version
    return Item(old.object | {"metadata": metadata}, new.revision)
