"""The columns of events."""

from datetime import datetime

from sandbox.apiserver.printing.ages import age
from sandbox.apiserver.printing.table import Column, from_path
from sandbox.apiserver.resources.resource import Object, PrintedColumn


def _object(event: Object, _: datetime) -> str:
    about = event.get("involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _source(event: Object, _: datetime) -> str:
    source = event.get("source", {})
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


def _last(event: Object, now: datetime) -> str:
    series = event.get("series", {}).get("lastObservedTime")
    return age(series or event.get("lastTimestamp") or event.get("eventTime"), now)


def _first(event: Object, now: datetime) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _count(event: Object, _: datetime) -> int:
    return int(event.get("series", {}).get("count") or event.get("count") or 1)


COLUMNS = (
    Column(name="Last Seen", cell=_last),
    from_path(PrintedColumn(name="Type", path="type")),
    from_path(PrintedColumn(name="Reason", path="reason")),
    Column(name="Object", cell=_object),
    from_path(PrintedColumn(name="Subobject", path="involvedObject.fieldPath", wide=True)),
    Column(name="Source", cell=_source, wide=True),
    Column(name="Message", cell=lambda event, _: str(event.get("message", "")).strip()),
    Column(name="First Seen", cell=_first, wide=True),
    Column(name="Count", cell=_count, wide=True),
)
