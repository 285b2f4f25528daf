"""The Lease of coordination.k8s.io that says which gateway decides, with the epoch of its term.

Each write names the version that it replaces, so that of two gateways only one succeeds. Whoever
may write Leases may write nonsense into this one: an epoch or a duration that no gateway writes is
ignored with a warning, since the binders know the highest epoch anyway.
"""

import math
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from moorage_host.kube import KubeClient, KubeStatusError, micro_time

EPOCH = "moorage.io/epoch"

LEAVING = "moorage.io/leaving"
"""Whether the holder is about to release the Lease, so that the next one may get ready."""

CONFLICT, NOT_FOUND = 409, 404

EPOCHS_AHEAD = 366 * 24 * 3600 * 1000
"""Epochs begin as the time in milliseconds; one further ahead of this clock is ignored."""

LONGEST_SECONDS = 60.0
"""A duration in a Lease counts up to this, or up to this process's own if that is longer."""

_log = structlog.get_logger()


class LeaseTakenError(Exception):
    """Another process has written the Lease meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A version of the Lease; the first one has not been created.

    Attributes:
        holder: Who decides; empty for nobody.
        seconds: How long after its last change the Lease ends, as its holder says.
        epoch: Of the newest term.
        leaving: Whether the holder is about to release it.
        version: Changes with every write; empty if there is none yet.
        document: Everything, as the API server has it.
    """

    holder: str = ""
    seconds: float = 0.0
    epoch: int = 0
    leaving: bool = False
    version: str = ""
    document: dict[str, Any] = field(default_factory=dict)


class LeaseStore:
    """Reads and writes one Lease."""

    def __init__(self, client: KubeClient, namespace: str, name: str) -> None:
        self.name = f"{namespace}/{name}"
        self._client = client
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._metadata = {"name": name, "namespace": namespace}
        self._doubted = ""  # the version about which was warned last

    async def read(self, timeout: float) -> Lease:
        """Return the newest version.

        Raises:
            KubeError: The API server refuses, or is not reached.
            TimeoutError: It does not answer in time.
        """
        path = f"{self._folder}/{self._metadata['name']}"
        answer = await self._client.request("GET", path, timeout=timeout)
        if answer.status == NOT_FOUND:
            return Lease()
        return self._lease(answer.check().body)

    async def write(
        self,
        before: Lease,
        holder: str,
        *,
        seconds: float,
        epoch: int,
        leaving: bool = False,
        timeout: float,
    ) -> Lease:
        """Replace a version, or create the Lease; return the new version.

        Raises:
            LeaseTakenError: There is a newer version.
            KubeError: The API server refuses, or is not reached.
            TimeoutError: It does not answer in time; the write may have been done.
        """
        notes = {EPOCH: str(epoch), **({LEAVING: "true"} if leaving else {})}
        body = msgspec.json.encode(self._document(before, holder, seconds, notes))
        method, path = "POST", self._folder
        if before.version:
            method, path = "PUT", f"{self._folder}/{self._metadata['name']}"
        answer = await self._client.request(method, path, body=body, timeout=timeout)
        try:
            return replace(self._lease(answer.check().body), epoch=epoch)
        except KubeStatusError as error:
            if error.status in (CONFLICT, NOT_FOUND):
                raise LeaseTakenError(str(error)) from error
            raise

    def _document(
        self, before: Lease, holder: str, seconds: float, notes: dict[str, str]
    ) -> dict[str, Any]:
        old, now = before.document, micro_time(datetime.now(UTC))
        metadata = {**self._metadata, **old.get("metadata", {})}
        others = {k: v for k, v in metadata.get("annotations", {}).items() if k != LEAVING}
        metadata["annotations"] = others | notes
        spec = {**old.get("spec", {}), "renewTime": now, "holderIdentity": holder}
        spec["leaseDurationSeconds"] = max(1, math.ceil(seconds))
        if holder and holder != before.holder:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + bool(before.version)
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        return {**old, **kind, "metadata": metadata, "spec": spec}

    def _lease(self, body: bytes) -> Lease:
        document = msgspec.json.decode(body, type=dict[str, Any])
        metadata, spec = document["metadata"], document.get("spec", {})
        notes = metadata.get("annotations") or {}
        version, doubts = metadata["resourceVersion"], []
        epoch, seconds = _number(notes.get(EPOCH, "0")), _number(spec.get("leaseDurationSeconds"))
        if epoch is None or epoch > time.time_ns() // 1_000_000 + EPOCHS_AHEAD:
            doubts.append(f"{EPOCH} is {str(notes[EPOCH])[:40]!r}")
            epoch = 0
        if seconds is None:
            doubts.append(f"leaseDurationSeconds is {str(spec['leaseDurationSeconds'])[:40]!r}")
        elif seconds > LONGEST_SECONDS:
            doubts.append(f"leaseDurationSeconds is {seconds}")
        if doubts and version != self._doubted:
            self._doubted = version
            _log.warning(
                "The Lease has values that no gateway should write; they are ignored or cut",
                lease=self.name,
                problem="; ".join(doubts),
            )
        return Lease(
            holder=spec.get("holderIdentity") or "",
            seconds=float(seconds or 0),
            epoch=epoch,
            leaving=notes.get(LEAVING) == "true",
            version=version,
            document=document,
        )


def _number(value: object) -> int | None:
    """Return a whole number that is not negative, of at most 20 digits; None for anything else."""
    text = str(value or 0)
    return int(text) if text.isdecimal() and len(text) <= 20 else None
