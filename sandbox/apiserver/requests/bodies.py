"""What clients send, and whether it is an object of the expected kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sandbox.apiserver.errors import bad_request, unsupported_media_type
from sandbox.apiserver.printing import Format
from sandbox.apiserver.requests import protobuf
from sandbox.apiserver.resources.custom import DEFINITIONS
from sandbox.apiserver.resources.table import ApiResource, Object, Target
from sandbox.apiserver.schemas import METADATA, Examination, Schema, built_in

MEDIA_TYPES = ("application/json", protobuf.MEDIA_TYPE)
_NOT_KEPT = ("selfLink", "managedFields")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request about objects."""

    target: Target
    query: Mapping[str, str]
    format: Format
    media_type: str
    body: bytes
    warnings: list[str] = field(default_factory=list)
    """What headers of the answer warn of, whether or not the call succeeds."""

    @property
    def dry_run(self) -> bool:
        """Check everything, change nothing."""
        return self.query.get("dryRun") == "All"

    @property
    def field_validation(self) -> str:
        """What becomes of unknown fields: Strict refuses them, Warn keeps them with a warning."""
        return self.query.get("fieldValidation") or "Warn"


def decode(body: bytes, media_type: str) -> Any:
    """Read a body by its media type; none means JSON.

    Raises:
        StatusError: 415 or 400.
    """
    if media_type not in ("", *MEDIA_TYPES):
        raise unsupported_media_type(media_type, MEDIA_TYPES)
    if media_type == protobuf.MEDIA_TYPE:
        return protobuf.decode_protobuf(body)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from error


def read_object(
    call: Call,
    value: Any,
    resource: ApiResource | None = None,
    *,
    kind: str = "",
    known: Object | None = None,
) -> Object:
    """Return what a client sent as an object in its stored form.

    Args:
        call: It says what becomes of unknown fields.
        value: What the client sent, or what its patch made.
        resource: What the object should be, by default what the call is about.
        kind: The kind, if it is another than the resource's.
        known: The object that was patched; its unknown fields are old.

    Raises:
        StatusError: As `check_object`; also 400, a field is unknown and validation strict.
    """
    resource, unknown = resource or call.target.resource, list[str]()
    obj = check_object(resource, value, kind, unknown)
    if unknown and known is not None:
        old = Examination(complete=False)
        old.examine(_schema_of(resource, kind or resource.kind), known)
        unknown = [path for path in unknown if path not in old.unknown]
    messages = [f'unknown field "{path}"' for path in unknown]
    if messages and call.field_validation == "Strict":
        problem = f"strict decoding error: {', '.join(messages)}"
        raise bad_request(_unusable(resource, kind or resource.kind, problem))
    if call.field_validation == "Warn":
        call.warnings.extend(messages)
    return obj


def check_object(
    resource: ApiResource, value: Any, kind: str = "", unknown: list[str] | None = None
) -> Object:
    """Return a deep copy of the value as an object in its stored form, without nulls.

    Args:
        resource: What the object should be.
        value: The object in the resource's API version.
        kind: The kind, if it is another than the resource's.
        unknown: Takes the paths of fields that the kind does not have.

    Raises:
        StatusError: 400, it is of another kind, or a field has the wrong type.
    """
    kind, api_version = kind or resource.kind, resource.api_version
    value = {} if value is None else value  # JSON's null has no fields either
    if not isinstance(value, dict):
        raise bad_request(f"the body of the request must be a {kind}")
    given = (value.get("apiVersion") or api_version, value.get("kind") or kind)
    if given != (api_version, kind):
        raise bad_request(_unconvertible(given, kind, api_version))
    identity = {"kind": kind, "apiVersion": api_version}
    obj: Object = identity | without_nulls(value) | identity
    found = Examination(complete=resource.stored_as == DEFINITIONS)
    found.examine(_schema_of(resource, kind), obj)
    if found.causes:
        raise bad_request(_unusable(resource, kind, str(found.causes[0])))
    if unknown is not None:
        unknown += found.unknown
    metadata = obj.get("metadata", {})
    # Empty maps and lists are left out too: Go writes none, and kubectl diff would show them.
    obj["metadata"] = {
        key: value
        for key, value in metadata.items()
        if key not in _NOT_KEPT and value not in ({}, [])
    }
    return resource.view.store(obj) if resource.view else obj


def without_nulls(value: Any) -> Any:
    """Return a deep copy in which fields that are null are absent, as Go writes objects."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value if each is not None]
    return value


def _schema_of(resource: ApiResource, kind: str) -> Schema:
    return built_in(resource.api_version, kind) or {"properties": {"metadata": METADATA}}


def _unusable(resource: ApiResource, kind: str, problem: str) -> str:
    version = resource.api_version.rpartition("/")[2]
    return f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}'


def _unconvertible(given: tuple[object, object], kind: str, api_version: str) -> str:
    version = str(given[0]).rpartition("/")[2]
    package = api_version.partition("/")[0].partition(".")[0] if "/" in api_version else "core"
    return (
        f'{given[1]} in version "{version}" cannot be handled as a {kind}: converting '
        f"({version}.{given[1]}) to ({package}.{kind}): unknown conversion"
    )
