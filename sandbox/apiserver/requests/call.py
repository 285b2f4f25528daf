"""What a request asks for, read from its method, path, query and body."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from sandbox.apiserver import errors
from sandbox.apiserver.printing import Format, negotiate
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.resources.resource import SUBRESOURCE_VERBS
from sandbox.apiserver.store.selection import flag

_BY_METHOD = {
    "GET": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", ""),
    "PATCH": ("patch", ""),
    "DELETE": ("delete", "deletecollection"),
}
_OPTIONS = {"dryRun": ("All",), "fieldValidation": ("Ignore", "Warn", "Strict")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request about objects."""

    verb: str
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


def verb_of(method: str, target: Target, query: Mapping[str, str]) -> str:
    """Return Kubernetes' word for what the request does.

    Raises:
        StatusError: 405.
    """
    one, many = _BY_METHOD.get(method, ("", ""))
    verb = one if target.name else many
    if verb == "list" and flag(query, "watch"):
        verb = "watch"
    allowed = target.resource.verbs
    if target.subresource:
        allowed = SUBRESOURCE_VERBS[target.subresource]
    elif verb == "create" and (target.name or _lacks_namespace(target)):
        verb = ""
    if verb not in allowed:
        raise errors.method_not_allowed()
    return verb


async def read_call(request: web.Request, verb: str, target: Target) -> Call:
    """Read the rest of the request.

    Raises:
        StatusError: 400 or 406.
        web.HTTPRequestEntityTooLarge: The body exceeds the limit.
    """
    query = dict(request.query)
    for name, supported in _OPTIONS.items():
        if query.get(name, "") not in ("", *supported):
            cause = errors.unsupported_value(name, query[name], supported)
            raise errors.invalid("Options", "", [cause], group="meta.k8s.io")
    return Call(
        verb=verb,
        target=target,
        query=query,
        format=negotiate(request.headers.get("Accept", ""), query),
        media_type=request.headers.get("Content-Type", "").partition(";")[0].strip(),
        body=await request.read(),
    )


def _lacks_namespace(target: Target) -> bool:
    return target.resource.namespaced and not target.namespace
