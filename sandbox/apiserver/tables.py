"""Objects as the Table that `kubectl get` prints; `columns` says what is in one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sandbox.apiserver.store import Object

Cell = Callable[[Object, datetime], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its title and how to fill it from an object and the present time."""

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False
    """Shown with -o wide only."""
    description: str = ""

    def definition(self) -> dict[str, Any]:
        """Return what the Table says about the column."""
        return {
            "name": self.name,
            "type": self.type,
            "format": "name" if self.name == "Name" and not self.wide else "",
            "description": self.description or self.name,
            "priority": 1 if self.wide else 0,
        }


def table(
    columns: Sequence[Column],
    objects: Iterable[Object],
    now: datetime,
    *,
    include: str = "Metadata",
    metadata: Object | None = None,
) -> Object:
    """Return a Table; `include` is Metadata, Object or None: how much of an object each row has."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata or {},
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(columns, obj, now, include) for obj in objects],
    }


def _row(columns: Sequence[Column], obj: Object, now: datetime, include: str) -> Object:
    row: Object = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return row
