"""The renderings: everything of deploy/ that a user applies, as objects."""

from dataclasses import dataclass

from tests.deploy.renderings.layouts import KUSTOMIZE, layouts
from tests.deploy.renderings.rendering import render_chart, render_kustomize
from tests.e2e.build import find
from tests.scenarios.planes import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One way to install Moorage: a layout by `helm template` or by `kubectl kustomize`."""

    layout: str
    by: str

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"{self.layout}, {self.by}"

    def objects(self) -> list[Object]:
        """Render it."""
        if self.by == "helm":
            documents = render_chart(find("helm"), layouts()[self.layout])
            return [document.manifest for document in documents]
        return render_kustomize(KUSTOMIZE / "overlays" / self.layout)


def renderings() -> list[Rendering]:
    """Return all that deploy/ has."""
    return [
        Rendering(layout=layout, by=by)
        for layout in sorted(layouts())
        for by in ("helm", "kustomize")
    ]
