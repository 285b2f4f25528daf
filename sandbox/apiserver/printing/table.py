"""Objects as the Table that `kubectl get` prints; `columns` lists what is in one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sandbox.apiserver.printing.ages import age
from sandbox.apiserver.resources.resource import Object, PrintedColumn, value_at

Cell = Callable[[Object, datetime], Any]
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its title and how to fill it from an object and the present time."""

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False
    """Shown with -o wide only."""

    def definition(self) -> dict[str, Any]:
        """Return how the Table describes the column."""
        return {
            "name": self.name,
            "type": self.type,
            "format": "name" if self.name == "Name" and not self.wide else "",
            "description": self.name,
            "priority": 1 if self.wide else 0,
        }


def from_path(column: PrintedColumn) -> Column:
    """Make a column that shows the field at a path, or the age of it if it is a date."""
    is_date = column.type == "date"

    def cell(obj: Object, now: datetime) -> Any:
        value = value_at(obj, column.path)
        if is_date:
            return age(value if isinstance(value, str) else None, now)
        return column.default if value in (None, "") else value

    kind = "string" if is_date else column.type
    return Column(name=column.name, cell=cell, type=kind, wide=column.wide)


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
        row["object"] = PARTIAL | {"metadata": obj["metadata"]}
    return row
