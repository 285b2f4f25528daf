"""The edge: reads requests, calls the verbs, writes answers. Nothing below here knows HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from aiohttp import web

from sandbox.apiserver import errors
from sandbox.apiserver.faults import Fault, Faults
from sandbox.apiserver.requests.audit import INJECTED, AuditLog, Entry
from sandbox.apiserver.requests.call import Call, read_call, verb_of
from sandbox.apiserver.requests.verbs import Verbs
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.store import encode
from sandbox.apiserver.watch import error_line, open_watch

log = structlog.get_logger()
MOST_WARNINGS = 20
"""Warnings in one answer; clients limit the length of headers."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Edge:
    """Answers every request below /api and /apis that is about objects."""

    def __init__(
        self, cluster: Cluster, faults: Faults, settings: Settings, audit: AuditLog
    ) -> None:
        self._cluster = cluster
        self._faults = faults
        self._settings = settings
        self._audit = audit
        self._verbs = Verbs(cluster, settings)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, with the faults that wait for it.

        Raises:
            StatusError: The answer is a failure.
        """
        target = self._cluster.target(request.path)
        verb = verb_of(request.method, target, request.query)
        with self._audit.auditing(request, verb, target) as entry:
            return await self._carry_out(request, verb, target, entry)

    async def _carry_out(
        self, request: web.Request, verb: str, target: Target, entry: Entry
    ) -> web.StreamResponse:
        path = "/".join(filter(None, (target.resource.plural, target.subresource)))
        fault = self._faults.take(verb, path, _name_of(target, request.query))
        if fault and not fault.done:
            await asyncio.sleep(fault.delay_seconds)
            if refusal := self._refuse(request, verb, fault, entry):
                return refusal
        call = await read_call(request, verb, target)
        entry.body = call.body
        if verb == "watch":
            return await self._watch(request, call)
        try:
            answer = self._verbs.run(call)
        except errors.StatusError as error:
            error.headers |= _warnings(call)
            raise
        entry.write(answer.code)
        if fault and fault.done:
            await asyncio.sleep(fault.delay_seconds)
            if refusal := self._refuse(request, verb, fault, entry):
                return refusal
        headers = _warnings(call)
        return web.Response(
            status=answer.code, body=answer.body, content_type="application/json", headers=headers
        )

    def _refuse(
        self, request: web.Request, verb: str, fault: Fault, entry: Entry
    ) -> web.StreamResponse | None:
        if fault.drop:
            return abort(request)
        error = fault.error()
        if error is None:
            return None
        if verb == "watch" and error.code == 410:
            return web.Response(body=error_line(error), content_type="application/json")
        entry.annotations[INJECTED] = str(error.code)
        raise error

    async def _watch(self, request: web.Request, call: Call) -> web.StreamResponse:
        watch = open_watch(self._cluster, call.target, call.query, call.format, self._settings)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self._faults.watching(watch)
        try:
            await response.prepare(request)
            async for chunk in watch.chunks():
                await response.write(chunk)
        except ConnectionError:
            return response  # the client went away
        finally:
            self._faults.watched(watch)
        return abort(request) if watch.ended == "dropped" else response


def abort(request: web.Request) -> web.Response:
    """Cut the connection; the response that is returned never arrives."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


@web.middleware
async def failures_as_status(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every failure with a Status object; unexpected ones are logged."""
    try:
        return await handler(request)
    except errors.StatusError as error:
        return status_response(error.status(), error.code, error.headers)
    except web.HTTPRequestEntityTooLarge as error:
        too_large = errors.too_large(request.client_max_size)
        log.debug("request too large", path=request.path, reason=str(error))
        return status_response(too_large.status(), 413)
    except RecursionError:
        too_deep = errors.bad_request("the body of the request is nested too deeply")
        return status_response(too_deep.status(), 400)
    except web.HTTPMethodNotAllowed:
        return status_response(errors.method_not_allowed().status(), 405)
    except web.HTTPNotFound:
        return status_response(errors.no_such_path().status(), 404)
    except Exception:
        log.exception("request failed", method=request.method, path=request.path)
        failure = errors.internal("the sandbox API server failed; its log has the reason")
        return status_response(failure.status(), 500)


def status_response(
    status: Mapping[str, Any], code: int, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Write a Status object."""
    return web.Response(
        status=code, body=encode(status), content_type="application/json", headers=headers
    )


def _name_of(target: Target, query: Mapping[str, str]) -> str:
    if target.name:
        return target.name
    field, _, value = query.get("fieldSelector", "").partition("=")
    return value if field == "metadata.name" else ""


def _warnings(call: Call) -> dict[str, str]:
    """Write the warnings of a call as one header, in the form that client-go parses."""
    escaped = (each.encode("unicode_escape").decode() for each in call.warnings[:MOST_WARNINGS])
    text = ", ".join('299 - "{}"'.format(each.replace('"', '\\"')) for each in escaped)
    return {"Warning": text} if text else {}
