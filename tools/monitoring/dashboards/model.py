"""A dashboard as rows of panels, and the JSON that Grafana makes of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["s", "short", "none", "percentunit", "bytes", "Bps", "reqps", "cps"]
Kind = Literal["timeseries", "stat", "table"]
Color = Literal["green", "yellow", "red", "text"]
Json = dict[str, Any]

COLUMNS = 24
HEIGHTS: Mapping[Kind, int] = {"stat": 4, "timeseries": 8, "table": 8}

OWN = "$own"
"""In selectors: the namespace and the pods that are chosen at the top of the dashboard."""

WITH_EXEMPLARS = (
    "moorage_scheduling_cycle_seconds_bucket",
    "moorage_cycle_duration_seconds_bucket",
    "moorage_cycle_queue_seconds_bucket",
    "moorage_plugin_execution_duration_seconds_bucket",
)

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query of a panel; `legend` names series by their labels, as in `{{pod}}`."""

    expression: str
    legend: str

    @property
    def text(self) -> str:
        """The expression as Grafana gets it."""
        return self.expression.replace(OWN, 'namespace=~"$namespace",pod=~"$pod"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel.

    Attributes:
        title: What it shows.
        about: What is good, what is not, and why; shown at its corner.
        unit: Of its values.
        queries: Expressions, and how their series are called.
        kind: A graph, the newest value, or the newest values of all series.
        width: Columns of 24.
        steps: From which values on it has which color, ascending; the first one is for all below.
        stacked: Whether series are added up.
        bars: Whether it has a bar for each time at which there was something, for what is rare.
        words: What stands for a value.
    """

    title: str
    about: str
    unit: Unit
    queries: Sequence[Query]
    kind: Kind = "timeseries"
    width: int = 8
    steps: Sequence[tuple[float | None, Color]] = ()
    stacked: bool = False
    bars: bool = False
    words: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One dashboard.

    Attributes:
        name: Of its file; with "moorage-" before it, its address in Grafana.
        title: What people see.
        about: What it is for.
        rows: Its panels.
        has_profiles: Whether one can choose profiles.
    """

    name: str
    title: str
    about: str
    rows: Sequence[Row]
    has_profiles: bool = False

    def panels(self) -> Iterator[Panel]:
        """Yield all panels."""
        for row in self.rows:
            yield from row.panels

    def json(self) -> Json:
        """Return what Grafana imports."""
        return {
            "uid": f"moorage-{self.name}",
            "title": f"Moorage / {self.title}",
            "description": self.about,
            "tags": ["moorage"],
            "editable": True,
            "graphTooltip": 1,
            "schemaVersion": 39,
            "time": {"from": "now-3h", "to": "now"},
            "refresh": "30s",
            "links": [_links()],
            "templating": {"list": [*_variables(has_profiles=self.has_profiles)]},
            "panels": [*self._placed()],
        }

    def _placed(self) -> Iterator[Json]:
        number, y = 0, 0
        for row in self.rows:
            number += 1
            place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
            yield {"id": number, "type": "row", "title": row.title, "gridPos": place, "panels": []}
            y, x, height = y + 1, 0, 0
            for panel in row.panels:
                number += 1
                if x + panel.width > COLUMNS:
                    y, x, height = y + height, 0, 0
                height = max(height, HEIGHTS[panel.kind])
                place = {"h": HEIGHTS[panel.kind], "w": panel.width, "x": x, "y": y}
                yield {"id": number, **_panel(panel), "gridPos": place}
                x += panel.width
            y += height


def _panel(panel: Panel) -> Json:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "targets": [_target(panel, number) for number in range(len(panel.queries))],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        **_options(panel),
    }


def _target(panel: Panel, number: int) -> Json:
    query = panel.queries[number]
    is_table = panel.kind == "table"
    is_instant = panel.kind != "timeseries"
    return {
        "refId": chr(ord("A") + number),
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": query.text,
        "legendFormat": query.legend,
        "instant": is_instant,
        "range": not is_instant,
        "exemplar": not is_instant and any(name in query.text for name in WITH_EXEMPLARS),
        **({"format": "table"} if is_table else {}),
    }


def _defaults(panel: Panel) -> Json:
    found: Json = {"unit": panel.unit}
    if panel.kind == "timeseries":
        found["min"] = 0
        found["custom"] = _style(panel)
    if panel.bars:
        found["noValue"] = "none"
    if panel.steps:
        steps = [{"value": value, "color": color} for value, color in panel.steps]
        found["thresholds"] = {"mode": "absolute", "steps": steps}
    if panel.words:
        options = {value: {"text": text} for value, text in panel.words.items()}
        found["mappings"] = [{"type": "value", "options": options}]
    return found


def _style(panel: Panel) -> Json:
    stacking = {"mode": "normal" if panel.stacked or panel.bars else "none"}
    if panel.bars:
        return {"drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0, "stacking": stacking}
    fill = 30 if panel.stacked else 0
    return {"fillOpacity": fill, "showPoints": "never", "stacking": stacking}


def _options(panel: Panel) -> Json:
    if panel.kind == "stat":
        reduced = {"calcs": ["lastNotNull"], "values": False}
        return {"options": {"colorMode": "value", "graphMode": "none", "reduceOptions": reduced}}
    if panel.kind == "table":
        hidden = {"excludeByName": {"Time": True, "Value": True}}
        return {"transformations": [{"id": "organize", "options": hidden}]}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
    return {"options": {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}}


def _variables(*, has_profiles: bool) -> Iterator[Json]:
    yield {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
    }
    yield _variable("namespace", "Namespace", "label_values(moorage_build_info, namespace)")
    pods = 'label_values(moorage_build_info{namespace=~"$namespace"}, pod)'
    yield _variable("pod", "Pod", pods)
    if has_profiles:
        profiles = 'label_values(moorage_shadow_cycles_total{namespace=~"$namespace"}, profile)'
        yield _variable("profile", "Profile with a shadow", profiles)


def _variable(name: str, label: str, query: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _links() -> Json:
    return {
        "type": "dashboards",
        "title": "Moorage",
        "tags": ["moorage"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
    }
