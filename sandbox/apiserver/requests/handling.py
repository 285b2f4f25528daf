"""The way of a request: what it asks for, the faults that wait for it, its verb and its answer.

Nothing below here knows HTTP: the cluster gets targets and objects.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from io import FileIO
from typing import Any

import msgspec
import structlog
from aiohttp import web

from sandbox.apiserver import errors
from sandbox.apiserver.faults import Fault, Faults
from sandbox.apiserver.lies import GZIP, answered, stream
from sandbox.apiserver.printing import negotiate
from sandbox.apiserver.requests.audit import INJECTED, AuditEntry, auditing
from sandbox.apiserver.requests.bodies import Call, decode, read_object
from sandbox.apiserver.requests.patches import patch, replace, shown
from sandbox.apiserver.resources.table import SUBRESOURCE_VERBS, Object, Target, parse
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.binding import bind
from sandbox.apiserver.store.cluster import EmbeddedCluster
from sandbox.apiserver.store.lists import Pages, flag, select, selected
from sandbox.apiserver.store.store import Item, encode
from sandbox.apiserver.watch import Watch, error_line

log = structlog.get_logger()
MOST_WARNINGS = 20
"""Warnings in one answer; clients limit the length of headers."""

_BY_METHOD = {
    "GET": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", ""),
    "PATCH": ("patch", ""),
    "DELETE": ("delete", "deletecollection"),
}
_PODS = parse("/api/v1/pods").resource

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


POLICIES = ("Foreground", "Background", "Orphan")


class DeleteOptions(msgspec.Struct, rename="camel"):
    """The body of a DELETE, as far as it matters here."""

    preconditions: dict[str, str | None] | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


class ObjectRequests:
    """Answers every request below /api and /apis that is about objects."""

    def __init__(
        self, cluster: EmbeddedCluster, faults: Faults, settings: Settings, audit: FileIO | None
    ) -> None:
        self._cluster = cluster
        self._faults = faults
        self._settings = settings
        self._audit = audit
        self._pages = Pages(cluster.store, settings.pages)
        self._verbs: dict[str, Callable[[Call], tuple[int, bytes]]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, with the faults that wait for it.

        Raises:
            StatusError: The answer is a failure.
        """
        target = self._cluster.target(request.path)
        verb = verb_of(request.method, target, request.query)
        path = "/".join(filter(None, (target.resource.plural, target.subresource)))
        with auditing(self._audit, request, verb, target) as entry:
            fault = self._faults.take(verb, path, _name_of(target, request.query))
            if fault and not fault.done and (cut := await _strike(fault, request, verb, entry)):
                return cut
            call = await read_call(request, target)
            entry.body = call.body
            if verb == "watch":
                return await self._watch(request, call, fault)
            try:
                code, body = self._verbs[verb](call)
            except errors.StatusError as error:
                error.headers |= _warnings(call)
                raise
            entry.write(code)
            if fault and fault.done and (cut := await _strike(fault, request, verb, entry)):
                return cut
            lie = fault.lie if fault else None
            return web.Response(
                status=code,
                body=answered(lie, body),
                content_type="application/json",
                headers=_warnings(call) | (GZIP if lie == "gzip" else {}),
            )

    async def _watch(
        self, request: web.Request, call: Call, fault: Fault | None
    ) -> web.StreamResponse:
        watch = Watch(self._cluster, call.target, call.query, call.format, self._settings)
        headers, chunks = {"Content-Type": "application/json"}, watch.chunks()
        if fault and fault.lie:
            watch.lie = fault.lie
            headers |= GZIP if fault.lie == "gzip" else {}
            chunks = stream(chunks, lambda: watch.lie, fault.delay_seconds)
        response = web.StreamResponse(headers=headers)
        self._faults.watching(watch)
        try:
            await response.prepare(request)
            async for chunk in chunks:
                await response.write(chunk)
        except ConnectionError:
            return response  # the client went away
        finally:
            self._faults.watched(watch)
        return _abort(request) if watch.ended == "dropped" else response

    def _get(self, call: Call) -> tuple[int, bytes]:
        return _answer(call, self._cluster.get(call.target))

    def _list(self, call: Call) -> tuple[int, bytes]:
        selection = select(call.target.resource, call.target.namespace, call.query)
        items, metadata = self._pages.list(selection, call.query)
        return 200, call.format.many(call.target.resource, items, metadata)

    def _create(self, call: Call) -> tuple[int, bytes]:
        target = call.target
        if target.subresource == "binding" or target.resource.kind == "Binding":
            return self._bind(call)
        if target.subresource == "eviction":
            return self._evict(call)
        obj = read_object(call, decode(call.body, call.media_type))
        return _answer(call, self._cluster.create(target, obj, dry_run=call.dry_run), 201)

    def _bind(self, call: Call) -> tuple[int, bytes]:
        target = call.target
        binding = read_object(call, decode(call.body, call.media_type), kind="Binding")
        pod = Target(resource=_PODS, namespace=target.namespace, name=target.name)
        bind(self._cluster, pod, binding, dry_run=call.dry_run)
        return 201, encode(errors.success(code=201))

    def _evict(self, call: Call) -> tuple[int, bytes]:
        body = decode(call.body, call.media_type)
        if not isinstance(body, dict) or body.get("kind", "Eviction") != "Eviction":
            raise errors.bad_request("the body of the request must be an Eviction")
        self._remove(call, call.target, body.get("deleteOptions") or {})
        return 201, encode(errors.success(code=201))

    def _update(self, call: Call) -> tuple[int, bytes]:
        return _answer(call, replace(self._cluster, call, decode(call.body, call.media_type)))

    def _patch(self, call: Call) -> tuple[int, bytes]:
        return _answer(call, patch(self._cluster, call))

    def _delete(self, call: Call) -> tuple[int, bytes]:
        item = self._remove(call, call.target, _delete_options(call))
        metadata, resource = item.object["metadata"], call.target.resource
        if resource.kind == "Pod" or metadata.get("deletionTimestamp"):
            return _answer(call, item)
        details: Object = {"name": metadata["name"], "kind": resource.plural}
        details |= {"group": resource.group} if resource.group else {}
        return 200, encode(errors.success(details | {"uid": metadata["uid"]}))

    def _delete_collection(self, call: Call) -> tuple[int, bytes]:
        resource = call.target.resource
        selection = select(resource, call.target.namespace, call.query)
        items = selected(self._cluster.store, selection)
        for item in items:
            metadata = item.object["metadata"]
            space = metadata.get("namespace")
            target = Target(resource=resource, namespace=space, name=metadata["name"])
            if self._cluster.collection(resource).get(target.space, target.name):
                self._remove(call, target, _delete_options(call))
        version = {"resourceVersion": str(self._cluster.store.revision)}
        return 200, call.format.many(resource, items, version)

    def _remove(self, call: Call, target: Target, value: Any) -> Item:
        try:
            options = msgspec.convert(value, DeleteOptions)
        except msgspec.ValidationError as error:
            raise errors.bad_request(f"DeleteOptions: {error}") from error
        policy = options.propagation_policy or call.query.get("propagationPolicy") or "Background"
        if policy not in POLICIES:
            cause = errors.unsupported_value("propagationPolicy", policy, (*POLICIES, "nil"))
            raise errors.invalid("DeleteOptions", "", [cause], group="meta.k8s.io")
        wanted = options.preconditions or {}
        return self._cluster.delete(
            target,
            uid=wanted.get("uid") or "",
            version=wanted.get("resourceVersion") or "",
            propagation=policy,
            dry_run=call.dry_run or options.dry_run == ["All"],
        )


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
    elif verb == "create" and (
        target.name or (target.resource.namespaced and not target.namespace)
    ):
        verb = ""
    if verb not in allowed:
        raise errors.method_not_allowed()
    return verb


async def read_call(request: web.Request, target: Target) -> Call:
    """Read the rest of the request.

    Raises:
        StatusError: 400 or 406.
        web.HTTPRequestEntityTooLarge: The body exceeds the limit.
    """
    query = dict(request.query)
    return Call(
        target=target,
        query=query,
        format=negotiate(request.headers.get("Accept", ""), query),
        media_type=request.headers.get("Content-Type", "").partition(";")[0].strip(),
        body=await request.read(),
    )


async def _strike(
    fault: Fault, request: web.Request, verb: str, entry: AuditEntry
) -> web.Response | None:
    """Apply a fault; return what is answered if the request ends here.

    Raises:
        StatusError: It ends with the fault's code.
    """
    if fault.lie != "drip":
        await asyncio.sleep(fault.delay_seconds)
    if fault.drop:
        return _abort(request)
    error = fault.error()
    if error is None:
        return None
    if verb == "watch" and error.code == 410:
        return web.Response(body=error_line(error), content_type="application/json")
    entry.annotations[INJECTED] = str(error.code)
    raise error


def _abort(request: web.Request) -> web.Response:
    """Cut the connection; the response that is returned never arrives."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _answer(call: Call, item: Item, code: int = 200) -> tuple[int, bytes]:
    if call.target.subresource == "scale":
        return code, encode(shown(call.target, item.object))
    return code, call.format.one(call.target.resource, item)


def _delete_options(call: Call) -> Any:
    return decode(call.body, call.media_type) if call.body else {}


def _name_of(target: Target, query: Mapping[str, str]) -> str:
    if target.name:
        return target.name
    field_name, _, value = query.get("fieldSelector", "").partition("=")
    return value if field_name == "metadata.name" else ""


def _warnings(call: Call) -> dict[str, str]:
    """Write the warnings of a call as one header, in the form that client-go parses."""
    escaped = (each.encode("unicode_escape").decode() for each in call.warnings[:MOST_WARNINGS])
    text = ", ".join('299 - "{}"'.format(each.replace('"', '\\"')) for each in escaped)
    return {"Warning": text} if text else {}


@web.middleware
async def failures_as_status(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every failure with a Status object; unexpected ones are logged."""
    try:
        return await handler(request)
    except errors.StatusError as error:
        failure = error
    except web.HTTPRequestEntityTooLarge as error:
        log.debug("request too large", path=request.path, reason=str(error))
        limit = request.client_max_size
        failure = errors.StatusError(413, f"Request entity too large: limit is {limit}")
    except RecursionError:
        failure = errors.bad_request("the body of the request is nested too deeply")
    except web.HTTPMethodNotAllowed:
        failure = errors.method_not_allowed()
    except web.HTTPNotFound:
        failure = errors.no_such_path()
    except Exception:
        log.exception("request failed", method=request.method, path=request.path)
        why = "the sandbox API server failed; its log has the reason"
        failure = errors.StatusError(500, f"Internal error occurred: {why}")
    return web.Response(
        status=failure.code,
        body=encode(failure.status()),
        content_type="application/json",
        headers=failure.headers,
    )
