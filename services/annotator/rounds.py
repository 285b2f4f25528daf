"""One round: ask Prometheus and read the nodes, then write those that need it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NoReturn

import msgspec
import structlog
from prometheus_client import Counter, Gauge

from moorage.measurements import PrometheusError
from moorage.measurements.prometheus.client import ask, by_measure, nodes_by_preset
from moorage.models import NodeManifest, decode_node
from moorage_host.kube import KubeClient, KubeError, KubeStatusError
from services.annotator.planning import Need, Planned, Planner, Values, WriteResult, measures
from services.annotator.settings import AnnotatorSettings

ROUNDS = Counter(
    "moorage_annotator_rounds_total", "Rounds that ended, by result: ok or failed.", ("result",)
)

SAMPLES = Counter("moorage_annotator_samples_total", "Numbers of nodes that Prometheus gave.")

PATCHES = Counter(
    "moorage_annotator_patches_total",
    "Nodes to be written: written, gone (deleted meanwhile) or failed.",
    ("result",),
)

NODES = Gauge(
    "moorage_annotator_nodes",
    "Nodes of the latest round: measured, unmeasured, or failed to be written.",
    ("state",),
)

LAST_SUCCESS = Gauge(
    "moorage_annotator_last_success_timestamp_seconds",
    "When a round last went well; 0 if none has yet.",
)


FIELD_MANAGER: Final = "moorage-annotator"
"""The field manager, as `kubectl get node --show-managed-fields` shows it."""

GONE: Final = 404

_PATH: Final = "/api/v1/nodes"
_log = structlog.get_logger()


class NodeClient:
    """The nodes of one cluster.

    Nothing is sent again here: what failed is asked for in the next round. Every method raises
    KubeStatusError if the API server refuses, KubeUnreachableError or TimeoutError if it does not
    answer, KubeError if it answers something else.

    Args:
        client: The connection; the caller closes it.
        timeout: Time for one request, in seconds.
    """

    def __init__(self, client: KubeClient, timeout: float) -> None:
        self._client = client
        self._timeout = timeout

    async def read(self) -> list[NodeManifest]:
        """Return all nodes; one that cannot be understood is logged and left out."""
        items = await self._client.items(_PATH, timeout=self._timeout)
        return [node for raw in items if (node := _decoded(raw))]

    async def annotate(self, name: str, annotations: Mapping[str, str | None]) -> bool:
        """Write annotations, remove those that are None; return whether the node still exists."""
        answer = await self._client.request(
            "PATCH",
            f"{_PATH}/{name}",
            timeout=self._timeout,
            query={"fieldManager": FIELD_MANAGER},
            body=msgspec.json.encode({"metadata": {"annotations": annotations}}),
            content_type="application/merge-patch+json",
        )
        try:
            answer.check()
        except KubeStatusError as error:
            if error.status != GONE:
                raise
            return False
        return True


def _decoded(raw: msgspec.Raw) -> NodeManifest | None:
    try:
        return decode_node(bytes(raw))
    except msgspec.DecodeError as error:
        _log.warning("A node cannot be read and is left out.", error=str(error))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that ended; `unknown_nodes` are those that only Prometheus has."""

    nodes: Sequence[Planned]
    unknown_nodes: Sequence[str]

    def count(self, what: WriteResult | Need) -> int:
        """Return how many nodes had this result, or this need."""
        return sum(what in (each.result, each.need) for each in self.nodes)

    @property
    def failure(self) -> str:
        """Why the round is a failure: something was to be written and nothing could be."""
        failed = [each for each in self.nodes if each.result is WriteResult.FAILED]
        if not failed or self.count(WriteResult.WRITTEN):
            return ""
        return f"none of {len(failed)} nodes could be written: {failed[0].problem}"


class Annotator:
    """Runs rounds; raises ConfigurationError for settings about Prometheus that cannot be used."""

    def __init__(
        self,
        settings: AnnotatorSettings,
        nodes: NodeClient,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._source = settings.source()
        self._nodes = nodes
        self._now = now
        self._concurrency = settings.concurrency
        self._measures = measures(settings.window)
        self._planner = Planner(
            prefix=settings.prefix,
            threshold=settings.threshold / 100,
            refresh=settings.refresh,
            layout=self._source.layout,
        )

    async def round(self, *, dry_run: bool = False) -> Round:
        """Write what is to be written: nothing, without an answer of Prometheus.

        What became of each node's request is in the result.

        Raises:
            PrometheusError: It does not answer, or knows none of the nodes.
            KubeError: The nodes cannot be read.
            TimeoutError: The API server does not answer in time.
        """
        now = self._now()
        values = await self._ask()
        nodes = await self._nodes.read()
        planned = self._planner.plan(nodes, values, now)
        unknown = self._planner.unknown_nodes(nodes, values)
        if nodes and all(each.need is Need.NOT_MEASURED for each in planned):
            self._refuse(nodes[0], unknown)
        places = asyncio.Semaphore(self._concurrency)

        async def carry_out(each: Planned) -> Planned:
            if dry_run or not each.need.is_work:
                return each
            async with places:
                return await self._write(each)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(carry_out(each)) for each in planned]
        return Round(nodes=[task.result() for task in tasks], unknown_nodes=unknown)

    async def _ask(self) -> Values:
        source, layout = self._source, self._source.layout
        values = by_measure(await ask(source, self._measures, layout), layout)
        if not values:
            found = await nodes_by_preset(source, self._measures)
            counts = ", ".join(f"{preset} ({count})" for preset, count in found.items())
            advice = f"it knows nodes under --preset {counts}" if found else "are nodes scraped?"
            raise PrometheusError(
                f"Prometheus at {source.address} measures no node by the label "
                f'"{layout.label}": {advice}'
            )
        SAMPLES.inc(sum(map(len, values.values())))
        return values

    def _refuse(self, node: NodeManifest, unknown: Sequence[str]) -> NoReturn:
        """Do not go on where names are evidently of another kind."""
        ours = self._source.layout.key_of_node(node)
        raise PrometheusError(
            f'Prometheus measures nodes such as "{unknown[0]}", the cluster has nodes '
            f'such as "{ours or node.name}": choose another --preset or --node-format'
        )

    async def _write(self, planned: Planned) -> Planned:
        problem = ""
        try:
            exists = await self._nodes.annotate(planned.node, planned.annotations)
            result = WriteResult.WRITTEN if exists else WriteResult.GONE
        except (KubeError, TimeoutError) as error:
            result, problem = WriteResult.FAILED, str(error)
        PATCHES.labels(result).inc()
        return replace(planned, result=result, problem=problem)
