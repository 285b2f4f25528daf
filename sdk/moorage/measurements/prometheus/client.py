"""Asks Prometheus over HTTP. A session per request: files may change, and requests are rare.

Loaded by `poller` only when the first source starts, because of aiohttp.
"""

import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
import structlog

from moorage.measurements.errors import PrometheusError
from moorage.measurements.prometheus.settings import PrometheusSettings

T = TypeVar("T")

_POST_IS_NOT_ALLOWED: Final = (403, 405, 501)  # 403: proxies that let people read only
_log = structlog.get_logger()


class Sample(msgspec.Struct, frozen=True):
    """One series at one time; Prometheus writes numbers as text."""

    metric: Mapping[str, str]
    value: tuple[float, str]

    @property
    def number(self) -> float:
        """The value; may be infinite or NaN."""
        return float(self.value[1])


class Series(msgspec.Struct, frozen=True):
    """One series over time: pairs of a Unix time in seconds and a number as text."""

    metric: Mapping[str, str]
    values: Sequence[tuple[float, str]]


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: Sequence[str] = ()


async def query(settings: PrometheusSettings, text: str) -> Sequence[Sample]:
    """Evaluate *text* now.

    Raises:
        PrometheusError: There was no answer in time, or it is an error or not a vector.
    """
    data = await _ask(settings, "query", {"query": text})
    return _decode(settings, data, "vector", tuple[Sample, ...])


async def query_range(
    settings: PrometheusSettings, text: str, *, start: float, end: float, step: float
) -> Sequence[Series]:
    """Evaluate *text* every *step* seconds from *start* to *end*, which are Unix times.

    Raises:
        PrometheusError: There was no answer in time, or it is an error or not a matrix.
    """
    times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
    data = await _ask(settings, "query_range", {"query": text, **times})
    return _decode(settings, data, "matrix", tuple[Series, ...])


async def _ask(settings: PrometheusSettings, endpoint: str, form: Mapping[str, str]) -> _Data:
    url = f"{settings.address.rstrip('/')}/api/v1/{endpoint}"
    try:
        status, body = await _send(settings, url, form)
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError as error:
        raise _error(settings, f"HTTP status {status}, and no answer of Prometheus") from error
    except TimeoutError as error:
        raise _error(settings, f"no answer within {settings.timeout}") from error
    except (aiohttp.ClientError, OSError, UnicodeError) as error:
        raise _error(settings, str(error) or type(error).__name__) from error
    if answer.status != "success" or answer.data is None:
        raise _error(settings, f"HTTP status {status}, {answer.error_type}: {answer.error}")
    if answer.warnings:
        _log.warning("Prometheus warns.", address=settings.address, warnings=answer.warnings)
    return answer.data


async def _send(
    settings: PrometheusSettings, url: str, form: Mapping[str, str]
) -> tuple[int, bytes]:
    timeout = aiohttp.ClientTimeout(total=settings.timeout_seconds)
    options: dict[str, Any] = {"headers": _headers(settings), "allow_redirects": False}
    options["ssl"] = _tls(settings)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        async with session.post(url, data=form, **options) as answer:
            if answer.status not in _POST_IS_NOT_ALLOWED:
                return answer.status, await _read(settings, answer)
        async with session.get(url, params=form, **options) as answer:
            return answer.status, await _read(settings, answer)


async def _read(settings: PrometheusSettings, answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > settings.max_answer_bytes:
            raise _error(settings, f"more than maxAnswerBytes ({settings.max_answer_bytes})")
    return bytes(body)


def _headers(settings: PrometheusSettings) -> dict[str, str]:
    if settings.bearer_token_file:
        return {"Authorization": f"Bearer {_secret(settings.bearer_token_file)}"}
    if settings.username:
        pair = f"{settings.username}:{_secret(settings.password_file)}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    return {}


def _secret(file: str) -> str:
    return Path(file).read_text().strip()


def _tls(settings: PrometheusSettings) -> ssl.SSLContext | bool:
    if settings.insecure_skip_verify:
        return False
    return ssl.create_default_context(cafile=settings.ca_file) if settings.ca_file else True


def _decode(settings: PrometheusSettings, data: _Data, expected: str, kind: type[T]) -> T:
    if data.result_type != expected:
        raise _error(settings, f"the result is a {data.result_type}, not a {expected}")
    try:
        return msgspec.json.decode(data.result, type=kind)
    except msgspec.MsgspecError as error:
        raise _error(settings, f"the result is not understood: {error}") from error


def _error(settings: PrometheusSettings, problem: str) -> PrometheusError:
    return PrometheusError(f"cannot query Prometheus at {settings.address}: {problem}")
