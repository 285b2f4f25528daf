"""The extension points that a plugin class implements, as Kubernetes calls them."""

from moorage.plugin.base import Plugin
from moorage.plugin.bind import BindPlugin
from moorage.plugin.filter import FilterPlugin
from moorage.plugin.normalization import Normalization
from moorage.plugin.score import ScorePlugin, normalization_of


def extension_points(kind: type[Plugin]) -> tuple[str, ...]:
    """Return Kubernetes' names of the extension points that a plugin class implements, in order."""
    prepares = kind.prepare is not Plugin.prepare
    points: list[str] = []
    if issubclass(kind, FilterPlugin):
        points += ["PreFilter", "Filter"] if prepares else ["Filter"]
    if issubclass(kind, ScorePlugin):
        normalizes = normalization_of(kind) is not Normalization.NONE
        points += ["PreScore", "Score"] if prepares else ["Score"]
        points += ["NormalizeScore"] if normalizes else []
    if issubclass(kind, FilterPlugin) and (
        kind.wants_claim is not FilterPlugin.wants_claim or kind.group is not FilterPlugin.group
    ):
        points.append("Reserve")
    if issubclass(kind, BindPlugin):
        points += ["Permit"] if kind.permit is not BindPlugin.permit else []
        points += ["PreBind"] if kind.pre_bind is not BindPlugin.pre_bind else []
        points += ["PostBind"] if kind.post_bind is not BindPlugin.post_bind else []
    return tuple(points)
