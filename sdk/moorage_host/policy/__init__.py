"""The policy: which plugins run for which pods, in which order, with which arguments.

The way of a policy: `examine` or `parse` a document, `resolve` it against the catalogue of plugins,
send `for_kind` to the replicas, which `decode_effective` and `check_arguments`.
"""

from moorage_host.policy.catalogue import IN_TREE, KINDS, Catalogue, Kind, PluginInfo
from moorage_host.policy.checks import check_arguments
from moorage_host.policy.document import (
    API_VERSION,
    DEFAULT_PROFILE,
    DEFAULT_SCORE_SCALE,
    KIND,
    ConfiguredProfile,
    Document,
    MoorageConfiguration,
    Shadow,
    default_document,
    examine,
    parse,
    read,
)
from moorage_host.policy.effective import (
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    FailurePolicy,
    decode_effective,
    encode_effective,
    shadow_of,
)
from moorage_host.policy.resolve import ResolvedPolicy, resolve

__all__ = [
    "API_VERSION",
    "DEFAULT_PROFILE",
    "DEFAULT_SCORE_SCALE",
    "IN_TREE",
    "KIND",
    "KINDS",
    "Catalogue",
    "ConfiguredProfile",
    "Document",
    "EffectivePlugin",
    "EffectivePolicy",
    "EffectiveProfile",
    "FailurePolicy",
    "Kind",
    "MoorageConfiguration",
    "PluginInfo",
    "ResolvedPolicy",
    "Shadow",
    "check_arguments",
    "decode_effective",
    "default_document",
    "encode_effective",
    "examine",
    "parse",
    "read",
    "resolve",
    "shadow_of",
]
