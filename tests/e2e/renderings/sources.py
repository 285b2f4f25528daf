"""The renderings: everything of deploy/ that a user applies, as objects."""

from dataclasses import dataclass, field

from tools.build import find
from tools.manifests.layouts import KUSTOMIZE, Values, layouts, merged
from tools.manifests.rendering import render_chart, render_kustomize
from tools.planes.embedded import Object

PLUGINS = ("NodeGroup", "ImageLocality", "NodeResourcesFit", "StatefulSetZone")
BINDING: Values = {
    "policy": {
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": n} for n in PLUGINS]}}}]
    },
    "statefulSets": {"enabled": True},
}
"""A policy that reads placements, and all that the gateway may be allowed to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One way to install Moorage: a layout by `helm template` or by `kubectl kustomize`."""

    layout: str
    by: str
    values: Values = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"{self.layout}, {'binds' if self.values else self.by}"

    def objects(self) -> list[Object]:
        """Render it."""
        if self.by == "helm":
            documents = render_chart(find("helm"), merged(layouts()[self.layout], self.values))
            return [document.manifest for document in documents]
        return render_kustomize(KUSTOMIZE / "overlays" / self.layout)


def renderings() -> list[Rendering]:
    """Return all that deploy/ has, and one with a policy for which the chart has Moorage bind."""
    each = (
        Rendering(layout=layout, by=by)
        for layout in sorted(layouts())
        for by in ("helm", "kustomize")
    )
    return [*each, Rendering(layout="second-scheduler", by="helm", values=BINDING)]
