"""Which renderings of the chart there are: options as kustomize components, layouts as overlays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart" / "moorage"
LAYOUTS = ROOT / "deploy" / "layouts"
KUSTOMIZE = ROOT / "deploy" / "kustomize"

Values = Mapping[str, Any]

OPTIONS: Mapping[str, Values] = {
    "annotator": {"annotator": {"enabled": True}},
    "autoscaling": {"autoscaling": {"scorer": {"enabled": True}}},
    "cert-manager": {"tls": {"source": "cert-manager"}},
    "control-plane": {"layout": "control-plane", "gateway": {"clusterIP": "10.96.88.88"}},
    "demo": {"demo": {"enabled": True}},
    "high-availability": {"highAvailability": {"enabled": True}},
    "monitoring": {"monitoring": {"enabled": True}},
    "plain-scheduler": {
        "layout": "control-plane",
        "gateway": {"clusterIP": "10.96.88.88"},
        "controlPlane": {"ownPods": "plain-scheduler"},
    },
    "sidecar": {"layout": "sidecar"},
    "stateful-sets": {"statefulSets": {"enabled": True}},
    "without-network-policies": {"networkPolicy": {"enabled": False}},
}
"""The components of deploy/kustomize, and the values that make the same difference in the chart."""

UPON: Mapping[str, str] = {"plain-scheduler": "control-plane"}
"""The components that come after another one, and have only the difference to that."""


def layouts() -> dict[str, Values]:
    """Return the values of each layout in deploy/layouts."""
    return {file.stem: yaml.safe_load(file.read_text()) or {} for file in LAYOUTS.glob("*.yaml")}


def components(values: Values) -> list[str]:
    """Return the components that make a layout of the base.

    Raises:
        ValueError: It has values that no component has.
    """
    found = [name for name, option in OPTIONS.items() if _has(values, option)]
    made: dict[str, Any] = {}
    for name in found:
        made = merged(made, OPTIONS[name])
    if made != values:
        raise ValueError(f"deploy/layouts: {values} is more than the options {found}")
    return found


def merged(values: Values, more: Values) -> dict[str, Any]:
    """Return values with others on top, as Helm merges them."""
    result = dict(values)
    for key, value in more.items():
        deeper = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if deeper else value
    return result


def _has(values: Values, option: Values) -> bool:
    for key, value in option.items():
        if key not in values:
            return False
        if isinstance(value, Mapping):
            if not _has(values[key], value):
                return False
        elif values[key] != value:
            return False
    return True
