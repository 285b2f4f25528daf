"""Reads what clients send: JSON or YAML, and whether it is an object of the expected kind."""

from typing import Any

import msgspec
import yaml

from sandbox.apiserver.errors import StatusError, bad_request, unsupported_media_type
from sandbox.apiserver.resources import Resource
from sandbox.apiserver.store import Object, encode

JSON_TYPES = ("application/json", "application/yaml")
_PROTECTED = ("selfLink", "managedFields")


class Metadata(msgspec.Struct, rename="camel"):
    """The types that the server relies on in the metadata of any object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[dict[str, Any]] = []


class Shape(msgspec.Struct):
    """Any object."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


def decode(body: bytes, media_type: str) -> Any:
    """Read a body by its media type.

    Raises:
        StatusError: 415 or 400.
    """
    if media_type not in ("", *JSON_TYPES):
        raise unsupported_media_type(media_type, JSON_TYPES)
    return _decode_yaml(body) if media_type.endswith("yaml") else decode_json(body)


def decode_json(body: bytes) -> Any:
    """Read JSON.

    Raises:
        StatusError: 400.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from error


def check_object(resource: Resource, value: Any, kind: str | None = None) -> Object:
    """Return the value as an object in its stored form, without nulls.

    Raises:
        StatusError: 400, it is of another kind or a field has the wrong type.
    """
    kind, api_version = kind or resource.kind, resource.api_version
    if not isinstance(value, dict):
        raise bad_request(f"the body of the request must be a {kind}, not {_name_of(value)}")
    given = (value.get("apiVersion", api_version), value.get("kind", kind))
    if given[1] != kind or given[0] != api_version:
        raise bad_request(
            f"the body of the request is a {given[0]} {given[1]}, expected {api_version} {kind}"
        )
    obj: Object = {"kind": kind, "apiVersion": api_version} | without_nulls(value)
    obj["metadata"] = _checked_metadata(kind, obj.get("metadata", {}))
    _check_types(resource, obj, kind)
    return resource.view.store(obj) if resource.view else obj


def without_nulls(value: Any) -> Any:
    """Return a deep copy in which fields that are null are absent, as Go writes objects."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


def _decode_yaml(body: bytes) -> Any:
    try:
        return yaml.safe_load(body)
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the body of the request is not YAML: {error}") from error


def _checked_metadata(kind: str, metadata: Any) -> Object:
    if not isinstance(metadata, dict):
        raise bad_request(f"{kind}: metadata must be an object, not {_name_of(metadata)}")
    return {key: value for key, value in metadata.items() if key not in _PROTECTED}


def _check_types(resource: Resource, obj: Object, kind: str) -> None:
    try:
        msgspec.convert(obj, Shape)
        if resource.rules.shape and kind == resource.kind:
            resource.rules.shape(encode(obj))
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise _cannot_be_handled(resource, kind, str(error)) from error
    except (TypeError, RecursionError) as error:  # YAML knows types that JSON does not
        raise _cannot_be_handled(resource, kind, str(error)) from error


def _cannot_be_handled(resource: Resource, kind: str, why: str) -> StatusError:
    version = resource.api_version
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _name_of(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
