"""Bind plugins: their base class, the decision that they get, and their answers."""

from moorage.plugin.bind.answers import Allow, Permission, Refusal, Wait
from moorage.plugin.bind.binding import Binding, DecisionSummary, ScoredNode
from moorage.plugin.bind.plugin import BindPlugin

__all__ = [
    "Allow",
    "BindPlugin",
    "Binding",
    "DecisionSummary",
    "Permission",
    "Refusal",
    "ScoredNode",
    "Wait",
]
