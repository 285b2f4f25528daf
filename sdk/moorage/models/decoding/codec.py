"""Reads and writes models as JSON; the only module that knows how."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from moorage.models.decoding.sharing import share_node, share_pod, trim_pod
from moorage.models.node import NodeManifest
from moorage.models.pod import Pod

T = TypeVar("T")

TOO_DEEP = "JSON is nested too deeply"


def tolerant_decoder(
    kind: type[T], finish: Callable[[T], T] = lambda obj: obj
) -> Callable[[bytes | str], T]:
    """Return what reads JSON as *kind*, null being the same as nothing, and applies *finish*.

    It raises msgspec.DecodeError if the text is not JSON, is nested too deeply, or a field has the
    wrong type.
    """
    decode = msgspec.json.Decoder(kind).decode

    def decode_tolerantly(text: bytes | str) -> T:
        try:
            return finish(decode(text))
        except msgspec.ValidationError:
            # Go writes null for some empty fields, where msgspec wants the field to be absent.
            try:
                return finish(msgspec.convert(_without_nulls(msgspec.json.decode(text)), kind))
            except RecursionError:
                raise msgspec.DecodeError(TOO_DEEP) from None
        except RecursionError:
            raise msgspec.DecodeError(TOO_DEEP) from None

    return decode_tolerantly


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(v) for key, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value if v is not None]
    return value


decode_pod: Callable[[bytes | str], Pod] = tolerant_decoder(Pod, share_pod)
"""Read a pod from JSON.

Raises:
    msgspec.DecodeError: The text is not JSON, or a field has the wrong type (with its path).
"""

decode_passing_pod: Callable[[bytes | str], Pod] = tolerant_decoder(Pod, trim_pod)
"""Read the same from JSON, for less time: a pod that nobody keeps need not share its parts."""

decode_node: Callable[[bytes | str], NodeManifest] = tolerant_decoder(NodeManifest, share_node)
"""Read a node from JSON.

Raises:
    msgspec.DecodeError: The text is not JSON, or a field has the wrong type (with its path).
"""

encode: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode
"""Write a model as JSON: known fields without defaults, in a stable order; equal models alike."""
