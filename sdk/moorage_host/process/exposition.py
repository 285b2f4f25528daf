"""The text of all metrics, made little by little; for `/metrics`.

prometheus_client makes it in one go, which stops a gateway's event loop for 15 to 30 ms. Here it
makes the text of each series once; later only the numbers change. A family's values are all of one
moment, those of two families may be of two.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

PIECE_SECONDS = 0.0005
PAUSE_SECONDS = 0.005
"""After a piece of work, all others have this long before the next; a cycle takes about as long."""

FORMATS = 8
"""Formats whose texts are kept: who asks names the version, and may name any."""

SPECIAL = ("_created", "_gsum", "_gcount")
"""Samples whose place in the text depends on the format."""

_Key = tuple[object, ...]

_number: Callable[[float], str] = floatToGoString


class Exposition:
    """Tells the metrics of *registry* as prometheus_client does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._known: dict[str, dict[_Key, str]] = {}

    async def text(self, accept: str, names: Sequence[str] = ()) -> tuple[bytes, str]:
        """Return the text and its content type.

        Args:
            accept: The formats that the client understands, as in the HTTP header.
            names: Series that are wanted; none means all.
        """
        encode, content_type = choose_encoder(accept)
        told = _Telling(encode, encode(_Only([])), self._known.get(content_type, {}))
        registry = self._registry.restricted_registry(names) if names else self._registry
        for family in registry.collect():
            await told.add(family)
        if not names:
            if len(self._known) >= FORMATS:
                self._known.clear()
            self._known[content_type] = told.used  # without series that are gone
        return told.text(), content_type


@dataclass(slots=True)
class _Telling:
    encode: Callable[[Collector], bytes]
    end: bytes
    known: dict[_Key, str]
    used: dict[_Key, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    async def add(self, family: Metric) -> None:
        """Tell a family; let others have their turn from time to time."""
        await self._pause()  # whoever collected it may have taken long
        plain = all(map(_is_plain, family.samples))
        self.lines.append(self._encoded(family, () if plain else family.samples))
        for sample in family.samples if plain else ():
            key = (sample.name, *sample.labels.items())
            series = self.known.get(key) or self._series(family, sample)
            self.used[key] = series
            self.lines.append(f"{series}{_number(sample.value)}\n")
            await self._pause()

    def text(self) -> bytes:
        """Return all that was told."""
        return "".join(self.lines).encode() + self.end

    def _series(self, family: Metric, sample: Sample) -> str:
        line = self._encoded(family, [sample]).splitlines()[-1]
        return line.removesuffix(_number(sample.value))

    def _encoded(self, family: Metric, samples: Iterable[Sample]) -> str:
        part = Metric(family.name, family.documentation, family.type, family.unit)
        part.samples = list(samples)
        return self.encode(_Only([part])).removesuffix(self.end).decode()

    async def _pause(self) -> None:
        if time.perf_counter() - self.began > PIECE_SECONDS:
            await asyncio.sleep(PAUSE_SECONDS)
            self.began = time.perf_counter()


class _Only(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _is_plain(sample: Sample) -> bool:
    more = (sample.timestamp, sample.exemplar, sample.native_histogram)
    return more == (None, None, None) and not sample.name.endswith(SPECIAL)
