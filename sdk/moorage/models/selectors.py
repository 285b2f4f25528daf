"""Selectors as objects carry them; `moorage.selectors` evaluates them."""

from moorage.models.base import Model


class Requirement(Model):
    """One condition on a key: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Model):
    """Matches objects by labels. An empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()
