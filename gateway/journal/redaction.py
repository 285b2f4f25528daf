"""Leaves out of a journal what may be secret: it is on disk, and people send it around.

Of pods and nodes, Moorage keeps only the fields that scheduling reads: no environment, commands or
volumes with secrets. Their annotations, and the other objects that plugins read, are as they are in
the cluster.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.models import NodeManifest, ObjectName, Pod, decode_node, encode

REMOVED = "redacted"
"""Stands for a value that was left out."""

_SECRET_FIELDS = ("data", "stringData")
_decode = msgspec.json.Decoder().decode


class Redaction:
    """What is left out.

    Attributes:
        is_on: Whether anything is.
        kept: The annotations that are not; * stands for any characters.
    """

    def __init__(self, *, is_on: bool, kept: Sequence[str]) -> None:
        self.is_on = is_on
        self.kept = tuple(kept)
        self._is_kept = re.compile("|".join(map(translate, kept)) or r"(?!)").match

    def pod(self, pod: Pod) -> bytes:
        """Return a pod as JSON."""
        if self.is_on and pod.metadata.annotations:
            kept = self._annotations(pod.metadata.annotations)
            pod = replace(pod, metadata=replace(pod.metadata, annotations=kept))
        return encode(pod)

    def node(self, content: bytes) -> bytes:
        """Return a node as JSON, of its JSON."""
        if not self.is_on or b'"annotations"' not in content:
            return content
        return self.manifest(decode_node(content))

    def manifest(self, node: NodeManifest) -> bytes:
        """Return a node as JSON."""
        if self.is_on and node.metadata.annotations:
            kept = self._annotations(node.metadata.annotations)
            node = replace(node, metadata=replace(node.metadata, annotations=kept))
        return encode(node)

    def object(self, name: ObjectName, content: bytes) -> bytes:
        """Return an object of an additional kind as JSON, of its JSON."""
        if not self.is_on:
            return content
        obj = _decode(content)
        if name.kind.plural == "secrets" and not name.kind.group:
            for field in _SECRET_FIELDS:
                if isinstance(values := obj.get(field), dict):
                    obj[field] = dict.fromkeys(values, "")
        return encode(self._cleaned(obj))

    def _cleaned(self, value: Any) -> Any:
        """Return JSON without values of environment variables, and with few annotations."""
        if isinstance(value, dict):
            return {key: self._field(key, part) for key, part in value.items()}
        return [self._cleaned(part) for part in value] if isinstance(value, list) else value

    def _field(self, key: str, value: Any) -> Any:
        if key == "annotations" and isinstance(value, dict):
            return self._annotations(value)
        if key == "env" and isinstance(value, list):
            return [_without_value(each) for each in value]
        return self._cleaned(value)

    def _annotations(self, annotations: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in annotations.items() if self._is_kept(key)}


def _without_value(variable: Any) -> Any:
    if isinstance(variable, dict) and "value" in variable:
        return {**variable, "value": REMOVED}
    return variable
