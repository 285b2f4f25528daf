"""What `moorage up` shows: where everything listens, and where each pod went and why.

Why is the gateway's sentence, the same as that of `moorage explain`. What in-tree plugins added is
known to kube-scheduler's stand-in alone.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from cli.shared.gateway.client import Gateway
from cli.shared.gateway.finding import GatewayError
from cli.shared.screen import Screen
from cli.up.following import Following, PodProgress, PodState
from cli.up.processes.stack import Addresses
from gateway.decisions.explanation import Explanation
from sandbox.client import Api, ApiError

ROWS = 20
"""Pods in the result, those without a node first."""

SHOWN = 3
"""In-tree plugins that are named."""

ADDED = re.compile(" failed: | rejected ")
"""Which sentences of the gateway are added to the first one."""

PREEMPTED = "preempted for a more important pod"
"""The reason for the end of a pod that kube-scheduler evicted."""

PENDING = (PodProgress.FAILING, PodProgress.UNSERVED, PodProgress.UNSCHEDULABLE)

ORDER = (*PENDING, PodProgress.GATED, PodProgress.DELETED, PodProgress.BOUND, PodProgress.WAITING)
"""Which pods are shown where there are more than ROWS."""

Answer = Mapping[str, Any]


def show_addresses(screen: Screen, addresses: Addresses) -> None:
    """Show where everything listens."""
    rows = [
        ("gateway", addresses.extender, "kube-scheduler's extender: urlPrefix"),
        ("admin port", addresses.admin, "/readyz /metrics /decisions/NAMESPACE/POD"),
        (
            "inspector",
            f"{addresses.admin}/inspector/",
            "a page for the browser: who is where, and why",
        ),
    ]
    for name, place in addresses.services.items():
        rows.append((name, place, f"grpcurl -plaintext {place} list"))
    if addresses.api:
        rows.append(("API server", addresses.api, "kubectl, with the kubeconfig below"))
    screen.table(("PROCESS", "ADDRESS", "FOR"), rows)


class Report:
    """Shows what became of pods, and asks the gateway and the stand-in why."""

    def __init__(self, screen: Screen, scheduler: Api, gateway: Gateway) -> None:
        """Write to *screen*.

        Args:
            screen: Where to.
            scheduler: The admin port of the stand-in for kube-scheduler.
            gateway: The gateway.
        """
        self._screen = screen
        self._scheduler = scheduler
        self._gateway = gateway

    async def result(self, following: Following) -> None:
        """Show the pods that had to be scheduled, or the most interesting ones, and a summary."""
        pods, rest = shown(following.pods)
        rows = [(pod.key, _place(pod), await self._reason(pod)) for pod in pods]
        if rows:
            self._screen.table(("POD", "NODE", "WHY"), rows)
        if rest:
            self._screen.sentence(f"... and {rest} more")
        self.totals(following)
        if following.failing:
            self._screen.write("Scheduling fails; the table says why.", style="red")

    def totals(self, following: Following) -> None:
        """Show how many pods are bound."""
        self._screen.write(totals(following.pods))

    async def change(self, pod: PodState) -> None:
        """Show what became of one pod."""
        self._screen.sentence(f"{pod.key} -> {_place(pod)}: {await self._reason(pod)}")

    async def _reason(self, pod: PodState) -> str:
        path = f"/decisions/{pod.namespace}/{pod.name}"
        scheduler, found, problem = None, None, ""
        with suppress(ApiError):  # it has none
            scheduler = await self._scheduler.request("GET", path)
        try:
            answer = await self._gateway.get(path)
            found = msgspec.convert(answer, Explanation)
        except GatewayError as error:
            problem = str(error)
        return why(pod, scheduler, found, problem)


def shown(pods: Sequence[PodState]) -> tuple[Sequence[PodState], int]:
    """Return the pods to show, of many the most interesting ones, and how many others there are."""
    if len(pods) > ROWS:
        pods = sorted(pods, key=lambda pod: ORDER.index(pod.outcome))
    return pods[:ROWS], len(pods[ROWS:])


def why(
    pod: PodState, scheduler: Answer | None, found: Explanation | None, problem: str = ""
) -> str:
    """Return the reason for a pod's place, or for its having none.

    Args:
        pod: How far it is.
        scheduler: The stand-in's newest decision, if it has one.
        found: The gateway's explanation, if there is one.
        problem: Why there is none.
    """
    if pod.outcome is PodProgress.DELETED:
        return PREEMPTED if pod.preempted else "by a client or by what made it"
    if found is None:
        return pod.problem or (problem if pod.node else "not tried yet")
    if found.place == "is gone" and not pod.node:  # this is about what was a while ago
        return "it was deleted since"
    parts = [found.reason]
    if pod.node and found.attempts:
        more = found.attempts[0].why[1:]
        parts += [each for each in more if ADDED.search(each) and each not in parts[0]]
        if scheduler and (scheduler["uid"], scheduler["node"]) == (pod.uid, pod.node):
            parts += _in_tree(scheduler)
    elif not pod.node:
        parts += [each for each in found.next if each.startswith("kube-scheduler tries it")]
    return "; ".join(parts)


def _in_tree(scheduler: Answer) -> Iterator[str]:
    """Yield what in-tree plugins had to do with the node that a pod got."""
    if scheduler["nominated"]:
        yield "the node was nominated for it, so no other was tried"
    for each in scheduler["rejected"]:
        yield f"in-tree {each['plugin']} rejected {each['nodes']}"
    if not (scores := scheduler["scores"]):
        return
    chosen, rival = scores["chosen"], scores["preferred"] or scores["runnerUp"]
    ahead = chosen["inTree"] - rival["inTree"]
    if ahead:
        better, other = (chosen, rival) if ahead > 0 else (rival, chosen)
        points = f"{better['node']} to {other['node']} by {abs(ahead)}{_parts(better, other)}"
        yield f"in-tree scores prefer {points}"
    if scores["equals"]:
        others = rival["node"] if scores["equals"] == 1 else f"{scores['equals']} others"
        yield f"as many points in all as {others}, taken at random"


def _parts(better: Answer, other: Answer) -> str:
    others = {each["plugin"]: each["score"] for each in other["plugins"]}
    parts = {
        each["plugin"]: (each["score"] - others.get(each["plugin"], 0)) * each["weight"]
        for each in better["plugins"]
    }
    ranked = sorted((part for part in parts.items() if part[1]), key=lambda part: -abs(part[1]))
    more = ["..."] if len(ranked) > SHOWN else []
    return f" ({', '.join([*(f'{name} {part:+}' for name, part in ranked[:SHOWN]), *more])})"


def _place(pod: PodState) -> str:
    if pod.outcome is PodProgress.DELETED:
        return "deleted"
    return pod.node or "pending"


def totals(pods: Sequence[PodState]) -> str:
    """Return how many pods there are of each kind."""
    outcomes = Counter(pod.outcome for pod in pods)
    parts = [
        f"{outcomes[PodProgress.BOUND]} of {len(pods)} pods bound",
        f"{sum(outcomes[kind] for kind in PENDING)} pending",
    ]
    for outcome, text in (
        (PodProgress.GATED, "held by scheduling gates"),
        (PodProgress.WAITING, "not decided yet"),
        (PodProgress.DELETED, "deleted"),
    ):
        if outcomes[outcome]:
            parts.append(f"{outcomes[outcome]} {text}")
    return ", ".join(parts)
