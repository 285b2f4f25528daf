"""All of Moorage's processes, scraped by a real Prometheus that evaluates the chart's rules."""

import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.certs.certificates import keep_certificates
from cli.up.processes import free_ports
from tests.monitoring.chart import RULES
from tests.prometheus import Counters, exporters, scraping
from tests.scenarios.world import World
from tools.planes.embedded import EmbeddedPlane, answers
from tools.planes.programs import Program

HOST = "127.0.0.1"
NOBODY = "http://127.0.0.1:1"
"""Where nothing listens."""

NODES = ("n1", "n2", "n3", "n4")
"""Nodes that Prometheus measures."""

EXEMPLARS = "--enable-feature=exemplar-storage"

OPTIONS = ("--trace-ratio=1", "--min-shard-time=0s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What tests use.

    Attributes:
        world: The processes, but for the annotator.
        prometheus: The URL of Prometheus.
    """

    world: World
    prometheus: str

    async def query(self, expression: str) -> list[Mapping[str, str]]:
        """Return the labels of all series that an expression has now.

        Raises:
            AssertionError: Prometheus refuses it.
        """
        data = await self._get("query", query=expression)
        return [each.get("metric", {}) for each in data["result"]]

    async def exemplars(self, expression: str) -> list[Mapping[str, str]]:
        """Return the labels of all exemplars of the series in an expression."""
        span = {"start": f"{time.time() - 600:.0f}", "end": f"{time.time() + 1:.0f}"}
        found = await self._get("query_exemplars", query=expression, **span)
        return [each["labels"] for series in found for each in series["exemplars"]]

    async def rules(self) -> list[dict[str, Any]]:
        """Return all rules with their state."""
        groups = (await self._get("rules"))["groups"]
        return [rule for group in groups for rule in group["rules"]]

    async def _get(self, what: str, **parameters: str) -> Any:
        url = f"{self.prometheus}/api/v1/{what}"
        async with aiohttp.ClientSession() as http, http.get(url, params=parameters) as answer:
            content = await answer.json()
        assert content["status"] == "success", f"{parameters}: {content}"
        return content["data"]


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[Installation]:
    """Start everything; stop it in the end."""
    plane = EmbeddedPlane(folder)
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", NOBODY)
        started = World.started(plane, options={"gateway": OPTIONS})
        world = await stack.enter_async_context(started)
        (port,) = free_ports(1)
        certificates = folder / "certs"
        keep_certificates(certificates)
        exporter = stack.enter_context(
            exporters(Counters(bytes=dict.fromkeys(NODES, (0.0, 1000.0))))
        )
        jobs = [*_jobs(world, port, certificates), _exported(exporter)]
        running = stack.enter_context(scraping(folder, jobs, EXEMPLARS, rules=[RULES]))
        annotator = _annotator(plane, running.address, certificates, port)
        stack.push_async_callback(annotator.stop)
        await annotator.start()
        installation = Installation(world=world, prometheus=running.address)
        targets = len(jobs) - 1 + len(NODES)

        async def scraped() -> bool:
            up = await answers(f"{running.address}/-/ready")
            return up and len(await installation.query("up == 1")) == targets

        await world.until(scraped)
        yield installation


def _annotator(plane: EmbeddedPlane, prometheus: str, certificates: Path, port: int) -> Program:
    """Return one with a certificate, so that the metrics of certificates are there too."""
    return Program(
        name="annotator",
        command=[
            *(sys.executable, "-m", "moorage_apps", "services.annotator"),
            *(f"--prometheus={prometheus}", "--interval=1s"),
            *("--window=6s", f"--kubeconfig={plane.kubeconfig('admin')}"),
            *(f"--admin-host={HOST}", f"--admin-port={port}"),
            f"--tls={certificates / 'annotator'}",
        ],
        log=plane.directory / "annotator.log",
        ready=lambda: answers(f"https://{HOST}:{port}/livez", ssl=False),
    )


def _jobs(world: World, annotator: int, certificates: Path) -> Iterator[dict[str, Any]]:
    for name in world.services.programs:
        yield _job(name, world.services.admin_of(name).removeprefix("http://"))
    metrics = certificates / "metrics"
    tls = {
        "ca_file": str(metrics / "ca.crt"),
        "cert_file": str(metrics / "tls.crt"),
        "key_file": str(metrics / "tls.key"),
        "server_name": "localhost",
    }
    yield {**_job("annotator", f"{HOST}:{annotator}"), "scheme": "https", "tls_config": tls}


def _exported(exporter: str) -> dict[str, Any]:
    """Return how the nodes are scraped."""
    targets = [
        {"targets": [exporter], "labels": {"__metrics_path__": f"/{name}", "node": name}}
        for name in NODES
    ]
    return {"job_name": "nodes", "honor_labels": True, "static_configs": targets}


def _job(name: str, address: str) -> dict[str, Any]:
    """Return how a process is scraped; a PodMonitor adds the same labels."""
    labels = {"namespace": "moorage", "pod": f"{name}-0", "container": "moorage"}
    return {"job_name": name, "static_configs": [{"targets": [address], "labels": labels}]}
