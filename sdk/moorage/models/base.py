"""How every model is laid out."""

import msgspec


class Model(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, dict=True
):
    """An immutable part of a Kubernetes object; `dict` lets models cache what they derive."""
