"""Write Kubernetes scheduling plugins in Python."""

from typing import Annotated

from msgspec import Meta, field

from moorage.errors import ConfigurationError, MoorageError, PluginFailedError, PluginLoadError
from moorage.groups import Group
from moorage.models import (
    DEVICE_CLASSES,
    ENDED_PODS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STATEFUL_SETS,
    NodeManifest,
    ObjectKind,
    Pod,
)
from moorage.plugin.arguments import Arguments
from moorage.plugin.base import SKIP, Preparation
from moorage.plugin.bind import (
    Allow,
    Binding,
    BindPlugin,
    DecisionSummary,
    Permission,
    Refusal,
    ScoredNode,
    Wait,
)
from moorage.plugin.filter import FilterPlugin
from moorage.plugin.normalization import MAX_SCORE, Normalization, Scores, normalize_by_maximum
from moorage.plugin.scope import Scope
from moorage.plugin.score import ScorePlugin
from moorage.snapshot import Amounts, CarriedTerm, Encoded, Node, Nodes, Objects
from moorage.snapshot.verdicts import Mask, Rejection, Verdicts
from moorage.units.durations import parse_duration
from moorage.version import __version__

__all__ = [
    "DEVICE_CLASSES",
    "ENDED_PODS",
    "MAX_SCORE",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "SKIP",
    "STATEFUL_SETS",
    "Allow",
    "Amounts",
    "Annotated",
    "Arguments",
    "BindPlugin",
    "Binding",
    "CarriedTerm",
    "ConfigurationError",
    "DecisionSummary",
    "Encoded",
    "FilterPlugin",
    "Group",
    "Mask",
    "Meta",
    "MoorageError",
    "Node",
    "NodeManifest",
    "Nodes",
    "Normalization",
    "ObjectKind",
    "Objects",
    "Permission",
    "PluginFailedError",
    "PluginLoadError",
    "Pod",
    "Preparation",
    "Refusal",
    "Rejection",
    "Scope",
    "ScorePlugin",
    "ScoredNode",
    "Scores",
    "Verdicts",
    "Wait",
    "__version__",
    "field",
    "normalize_by_maximum",
    "parse_duration",
]
