"""The policy: which plugins run for which pods, in which order, with what."""

from moorage.policy.effective import (
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    FailurePolicy,
    decode_effective,
    encode_effective,
)

__all__ = [
    "EffectivePlugin",
    "EffectivePolicy",
    "EffectiveProfile",
    "FailurePolicy",
    "decode_effective",
    "encode_effective",
]
