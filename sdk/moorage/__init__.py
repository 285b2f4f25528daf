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
from moorage.plugin.hooks import BindPlugin, FilterPlugin, ScorePlugin
from moorage.plugin.normalization import MAX_SCORE, Normalization, Scores, normalize_by_maximum
from moorage.plugin.values import (
    SKIP,
    Allow,
    Binding,
    DecisionSummary,
    Permission,
    Preparation,
    Refusal,
    Scope,
    ScoredNode,
    Wait,
)
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
