"""How every model is laid out."""

import msgspec


class Model(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """An immutable part of a Kubernetes object.

    Nothing in it can refer back to it, so the garbage collector may ignore it: with 150,000 pods,
    looking for cycles would stop the process for seconds. Models that cache what they derive need
    a `dict` and with it `gc`.
    """
