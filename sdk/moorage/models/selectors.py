"""Selectors as objects carry them; `moorage.rules` evaluates them."""

from collections.abc import Mapping

from moorage.models.base import NOTHING, Model


class Requirement(Model, frozen=True):
    """One condition on a key: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Model, frozen=True):
    """Matches objects by labels. An empty selector matches everything."""

    match_labels: Mapping[str, str] = NOTHING
    match_expressions: tuple[Requirement, ...] = ()
