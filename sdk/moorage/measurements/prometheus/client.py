"""Asks Prometheus about all nodes at once, and finds the values of each in the answer.

A session per request: files may change, and requests are rare. Loaded only when the first source
starts, because of aiohttp.
"""

import math
import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import structlog

from moorage.measurements.plugin import PrometheusError
from moorage.measurements.prometheus.query import (
    MEASURE_LABEL,
    PRESETS,
    Layout,
    Measure,
    Preset,
    PrometheusSettings,
    query_text,
)

Values = Mapping[str, Mapping[str, float]]
"""By measure and by the key of the node."""

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


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: Sequence[str] = ()


async def ask(
    settings: PrometheusSettings, measures: Mapping[str, Measure], layout: Layout
) -> Sequence[Sample]:
    """Return the samples of all *measures* that name a node.

    Raises:
        PrometheusError: There was no answer in time, or it is an error or not a vector.
    """
    samples = await query(settings, query_text(measures, layout))
    return [sample for sample in samples if layout.key_of(sample.metric)]


def by_measure(samples: Sequence[Sample], layout: Layout) -> Values:
    """Return the finite numbers among *samples*."""
    values: dict[str, dict[str, float]] = {}
    for sample in samples:
        if math.isfinite(sample.number):
            measure = values.setdefault(sample.metric.get(MEASURE_LABEL, ""), {})
            measure[layout.key_of(sample.metric)] = sample.number
    return values


async def nodes_by_preset(
    settings: PrometheusSettings, measures: Mapping[str, Measure]
) -> dict[Preset, int]:
    """Return the presets under which Prometheus knows nodes, and how many, asking for each."""
    return {
        preset: len({layout.key_of(sample.metric) for sample in samples})
        for preset, layout in PRESETS.items()
        if (samples := await _try(settings, measures, layout))
    }


async def _try(
    settings: PrometheusSettings, measures: Mapping[str, Measure], layout: Layout
) -> Sequence[Sample]:
    try:
        return await ask(settings, measures, layout)
    except PrometheusError:  # such as a join that is ambiguous here
        return ()


async def query(settings: PrometheusSettings, text: str) -> Sequence[Sample]:
    """Evaluate *text* now.

    Raises:
        PrometheusError: There was no answer in time, or it is an error or not a vector.
    """
    data = await _ask(settings, text)
    if data.result_type != "vector":
        raise _error(settings, f"the result is a {data.result_type}, not a vector")
    try:
        return msgspec.json.decode(data.result, type=tuple[Sample, ...])
    except msgspec.MsgspecError as error:
        raise _error(settings, f"the result is not understood: {error}") from error


async def _ask(settings: PrometheusSettings, text: str) -> _Data:
    try:
        status, body = await _send(settings, {"query": text})
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


async def _send(settings: PrometheusSettings, form: Mapping[str, str]) -> tuple[int, bytes]:
    url = f"{settings.address.rstrip('/')}/api/v1/query"
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


def _error(settings: PrometheusSettings, problem: str) -> PrometheusError:
    return PrometheusError(f"cannot query Prometheus at {settings.address}: {problem}")
