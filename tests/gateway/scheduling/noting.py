"""Gateways whose plugins note what they are asked."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moorage import FilterPlugin, Nodes, Normalization, Pod, Rejection, Scope, ScorePlugin
from tests.manifests import Object, node
from tools.inprocess.gateway import Gate, Gateway, Options, is_open, plane, pod, policy_of
from tools.waiting import until

NAMES = ("n1", "n2", "n3", "n4", "n5")
FULL = Rejection("node is full", unresolvable=False)
TAINTED = Rejection("node is tainted")


@dataclass(slots=True)
class Asked:
    """The nodes that plugins were asked about, call by call, since it was taken last."""

    filters: list[list[str]] = field(default_factory=list)
    scores: list[list[str]] = field(default_factory=list)

    def taken(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return what the filter and the score plugin were asked, and forget it."""
        taken = self.filters, self.scores
        self.filters, self.scores = [], []
        return taken


def noting(asked: Asked) -> tuple[type[FilterPlugin], type[ScorePlugin]]:
    """Return plugins that look at a node with its pods only, and note which ones."""

    class Fits(FilterPlugin):
        """Rejects nodes that have a taint, or as many pods as they may have."""

        depends_on = Scope.NODE

        def filter(self, pod: Pod, nodes: Nodes) -> Any:
            asked.filters.append(sorted(nodes.names))
            tainted = [bool(node.taints) for node in nodes]
            full = [len(node.pods) >= node.allocatable["pods"] for node in nodes]
            return nodes.verdicts().reject(tainted, TAINTED).reject(full, FULL)

    class Likes(ScorePlugin):
        """Prefers nodes that are labelled so, and those with more pods."""

        depends_on = Scope.NODE
        normalization = Normalization.MAXIMUM

        def score(self, pod: Pod, nodes: Nodes) -> Any:
            asked.scores.append(sorted(nodes.names))
            return [float(node.labels.get("liked", "1")) + len(node.pods) for node in nodes]

    return Fits, Likes


def policy(
    filters: str = "{name: Fits}", scores: str = "{name: Likes}, {name: Equal}", config: str = ""
) -> str:
    """Write a policy with these plugins and no others."""
    plugins = f"{{filter: {{enabled: [{filters}]}}, score: {{enabled: [{scores}]}}}}"
    return policy_of(plugins, config)


def noted(
    folder: Path,
    *plugins: Any,
    text: str = policy(),
    replicas: int = 1,
    gate: Gate = is_open,
    **settings: Any,
) -> AbstractAsyncContextManager[Gateway]:
    """Run a gateway and replicas, which see through the *gate* what they are asked."""
    gates = (gate,) * replicas
    patient = {"http_timeout": 60.0, "hedge_floor": 5.0}  # on a busy machine all are slow
    usual: Options = {"filter_gates": gates, "scorer_gates": gates, "decision_top": 50, **patient}
    return plane(folder, *plugins, policy=text, **usual | settings)


def of_set(name: str, **metadata: Any) -> Object:
    """Build a pod of a Deployment, which differs from the others in whatever is its own."""
    made = pod(name)
    volume = {"name": f"kube-api-access-{name}", "projected": {"sources": []}}
    made["spec"]["volumes"] = [volume]
    made["status"] = {"phase": "Pending", "message": name}
    own = {"creationTimestamp": f"2026-11-22T00:00:{len(name):02}Z", "resourceVersion": name}
    made["metadata"] |= {"generateName": "web-", "labels": {"app": "web"}, **own, **metadata}
    return made


def answered(process: Gateway) -> tuple[float, float]:
    counts = [
        process.sample("moorage_cycle_duration_seconds_count", phase=phase)
        for phase in ("filter", "score")
    ]
    return counts[0], counts[1]


async def decided(process: Gateway, name: str, namespace: str = "default") -> Object:
    _, answer = await process.get(f"/decisions/{namespace}/{name}")
    decision: Object = answer["attempts"][0]
    return decision


async def told(process: Gateway, resource: str, change: Callable[[], Any]) -> None:
    """Change nodes or pods; wait until the gateway has heard of it."""
    before = events(process, resource)
    change()
    await until(lambda: events(process, resource) > before)


def events(process: Gateway, resource: str) -> float:
    """Return how many events the watch of nodes or pods has told of."""
    return sum(
        process.sample("moorage_watch_events_total", resource=resource, type=kind)
        for kind in ("ADDED", "MODIFIED", "DELETED")
    )


def liked(name: str, **more: str) -> Object:
    """Build a node that is liked by its number."""
    return node(name, liked=name[1:], **more)


async def fill(process: Gateway) -> None:
    """Create nodes: the last two do not fit."""
    for made in (*map(liked, NAMES[:3]), liked("n4", pods="0"), liked("n5", taint="gpu")):
        process.api.create("/api/v1/nodes", made)
    await until(lambda: process.sample("moorage_cache_size", type="nodes") == len(NAMES))
