"""The renderings: everything of deploy/ that a user applies, as objects."""

from collections.abc import Mapping

from tools.manifests.rendering import Values, installed, layouts, render
from tools.planes.embedded import Object

PLUGINS = ("NodeGroup", "ImageLocality", "NodeResourcesFit", "StatefulSetZone")
BINDING: Values = {
    "policy": {
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": n} for n in PLUGINS]}}}]
    },
    "statefulSets": {"enabled": True},
}
"""A policy that reads placements, and all that the gateway may be allowed to read."""

RENDERINGS: Mapping[str, Values] = {
    **{layout: {} for layout in sorted(layouts())},
    "second-scheduler, binds": BINDING,
}
"""Each committed install.yaml, and a rendering of values for which the chart has Moorage bind."""


def objects_of(rendering: str) -> list[Object]:
    """Return the objects of a rendering."""
    values = RENDERINGS[rendering]
    return render(values) if values else installed(rendering)
