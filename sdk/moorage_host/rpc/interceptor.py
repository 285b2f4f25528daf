"""Gives every call its status, metrics and log context; the only interceptor of all services.

Handlers may be coroutines or asynchronous generators. Both run here as coroutines, so that a
generator's `finally` runs at once when the caller hangs up, not when garbage is collected.

The message of a unary call is read and decoded here, not by grpc: it would write a traceback for a
message that is malformed, and read all messages at once, however many calls there are.
"""

import asyncio
import functools
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeAlias

import grpc
from opentelemetry.context import Context as TraceContext
from opentelemetry.trace import SpanKind, Tracer
from structlog.contextvars import bound_contextvars

from moorage_host.process.metrics import CALL_SECONDS, CALLS, children
from moorage_host.rpc.adhoc import ConcurrencyLimit
from moorage_host.rpc.errors import CallError, reason_of, report
from moorage_host.tls.identities import Authorization, grpc_identities
from moorage_host.tracing.spans import sampled, span

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Any, Context], Any]

REASON_KEY = "moorage-reason"

MESSAGE_SECONDS = 10.0
"""How long a caller may take to send the one message of a call."""

_handled = children(CALLS)
_seconds = children(CALL_SECONDS)
_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Maps errors to status codes, counts and times calls, binds `rpc` and `traceparent` for logs.

    Calls that are cancelled count as CANCELLED, whether the caller hangs up, its deadline passes or
    the service ends the call; who is still there gets UNAVAILABLE.
    """

    def __init__(
        self,
        limit: ConcurrencyLimit | None = None,
        authorization: Authorization | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """Limit calls of the methods that *limit* has; refuse what *authorization* does.

        Without *authorization* everything is allowed: that is for plain text. *tracer* records
        the spans of calls whose metadata have a trace context.
        """
        self._limit = limit
        self._authorization = authorization
        self._tracer = tracer

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Wrap the handler of one call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            # Method names of unknown clients must not become labels.
            _handled("unknown", "unknown", grpc.StatusCode.UNIMPLEMENTED.name).inc()
            return None  # type: ignore[return-value]  # grpc answers UNIMPLEMENTED
        limit = self._limit
        if limit is not None and handler_call_details.method not in limit.methods:
            limit = None
        return _wrapped(handler, handler_call_details, limit, self._authorization, self._tracer)


def _wrapped(
    handler: Any,
    details: grpc.HandlerCallDetails,
    limit: ConcurrencyLimit | None,
    authorization: Authorization | None,
    tracer: Tracer | None,
) -> Handler:
    kind = f"{_arity(handler.request_streaming)}_{_arity(handler.response_streaming)}"
    behaviour: Behaviour = getattr(handler, kind)
    deserializer = handler.request_deserializer
    if not handler.request_streaming:
        behaviour = functools.partial(_call_with_message, behaviour, deserializer, limit)
        deserializer = None
        if tracer is not None and (parent := sampled(_traceparent(details))):
            behaviour = functools.partial(_traced, behaviour, tracer, parent, details.method)
    factory = getattr(grpc, f"stream_{_arity(handler.response_streaming)}_rpc_method_handler")
    wrapped: Handler = factory(
        functools.partial(_call, behaviour, details, authorization),
        request_deserializer=deserializer,
        response_serializer=handler.response_serializer,
    )
    return wrapped


def _arity(streaming: bool) -> str:
    return "stream" if streaming else "unary"


async def _call(
    behaviour: Behaviour,
    details: grpc.HandlerCallDetails,
    authorization: Authorization | None,
    requests: Any,
    context: Context,
) -> Any:
    _, service, method = details.method.split("/")
    code = grpc.StatusCode.CANCELLED
    started = time.perf_counter()
    try:
        with bound_contextvars(**_log_context(details)):
            if authorization is not None and _is_refused(authorization, details.method, context):
                code = grpc.StatusCode.PERMISSION_DENIED
                return None
            try:
                answer = behaviour(requests, context)
                if inspect.isasyncgen(answer):
                    async with aclosing(answer):  # a session passes here twice with each message
                        async for each in answer:
                            await context.write(each)
                    answer = None
                else:
                    answer = await answer
            except grpc.aio.AbortError:  # `context.abort` was called; the status is set already
                raise
            except Exception as error:  # noqa: BLE001 - here exceptions become status codes
                _refuse(context, error)
                answer = None
        code = _code_of(context)
    except asyncio.CancelledError:
        # This is the end of the call's own task. grpc would send no status; a caller who is still
        # there, because a service ended its sessions to drain, would wait for ever.
        context.set_code(grpc.StatusCode.UNAVAILABLE)
        context.set_details("the service ended the call; repeat it with another replica")
        return None
    except grpc.aio.AbortError:
        code = _code_of(context)
        raise
    finally:
        _handled(service, method, code.name).inc()
        _seconds(service, method).observe(time.perf_counter() - started)
    return answer


def _is_refused(authorization: Authorization, method: str, context: Context) -> bool:
    identities = grpc_identities(context.auth_context())
    refusal = authorization.refusal(method.removeprefix("/"), identities)
    if refusal:
        _refuse(context, CallError(grpc.StatusCode.PERMISSION_DENIED, refusal))
    return bool(refusal)


async def _traced(
    behaviour: Behaviour,
    tracer: Tracer,
    parent: TraceContext,
    method: str,
    requests: Any,
    context: Context,
) -> Any:
    """Answer one call, with a span."""
    with span(tracer, method.removeprefix("/"), parent, kind=SpanKind.SERVER):
        return await _written(behaviour(requests, context), context)


async def _call_with_message(
    behaviour: Behaviour,
    deserializer: Callable[[bytes], Any] | None,
    limit: ConcurrencyLimit | None,
    requests: AsyncIterator[bytes],
    context: Context,
) -> Any:
    """Read the one message of a call and answer it, within its limit if it has one."""
    async with AsyncExitStack() as stack:
        if limit is not None:
            await stack.enter_async_context(limit.slot())
        async with asyncio.timeout(MESSAGE_SECONDS):
            message = await anext(requests, None)
        if message is None:
            raise CallError(grpc.StatusCode.INVALID_ARGUMENT, "the call has no message")
        if limit is not None:
            limit.check(message)
        request = message if deserializer is None else deserializer(message)
        return await _written(behaviour(request, context), context)


async def _written(answer: Any, context: Context) -> Any:
    """Wait for what a handler answers; write it if it is a stream."""
    if not inspect.isasyncgen(answer):
        return await answer
    async with aclosing(answer):
        async for each in answer:
            await context.write(each)
    return None


def _refuse(context: Context, error: Exception) -> None:
    """Set the status instead of calling `abort`, which cuts other calls while a server drains."""
    code, message = report(error)
    context.set_code(code)
    context.set_details(message)
    if reason := reason_of(error):
        context.set_trailing_metadata(((REASON_KEY, reason),))


def _code_of(context: Context) -> grpc.StatusCode:
    code = context.code()  # a number as long as nobody has set it
    return code if isinstance(code, grpc.StatusCode) else grpc.StatusCode[_NAMES[code or 0]]


def _log_context(details: grpc.HandlerCallDetails) -> dict[str, str]:
    rpc = {"rpc": details.method.removeprefix("/")}
    if traceparent := _traceparent(details):
        rpc["traceparent"] = traceparent
    return rpc


def _traceparent(details: grpc.HandlerCallDetails) -> str:
    for key, value in details.invocation_metadata or ():
        if key == "traceparent":
            return str(value)
    return ""
