"""Who called last, and when: shows whether kube-scheduler reaches the gateway, and as whom."""

import time
from collections.abc import Callable, Mapping
from ssl import cert_time_to_seconds
from types import MappingProxyType
from typing import Any

NO_CERTIFICATE: Mapping[str, Any] = MappingProxyType({})

KEPT = 32
"""Callers and verbs that are kept; the one whose last call is longest ago is forgotten first."""


class LastCalls:
    """The newest call of each caller and verb."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Know no call; *clock* returns the time in seconds."""
        self._clock = clock
        self._calls: dict[tuple[str, str], tuple[int, float, Mapping[str, Any]]] = {}

    def note(self, caller: str, verb: str, certificate: Mapping[str, Any] = NO_CERTIFICATE) -> None:
        """Note a call; the verb is "" for somebody who may not call."""
        count, *_ = self._calls.pop((caller, verb), (0,))
        self._calls[caller, verb] = count + 1, self._clock(), certificate
        if len(self._calls) > KEPT:
            del self._calls[next(iter(self._calls))]

    def shown(self) -> list[dict[str, Any]]:
        """Return them, the newest first; without a verb for those that were refused."""
        now = self._clock()
        return [
            {
                "caller": caller,
                "verb": verb,
                "refused": not verb,
                "calls": count,
                "secondsAgo": round(now - last, 3),
                "certificate": {
                    field: cert_time_to_seconds(certificate[field])
                    for field in ("notBefore", "notAfter")
                    if field in certificate
                },
            }
            for (caller, verb), (count, last, certificate) in reversed(self._calls.items())
        ]
