"""The output of `moorage up`: where everything listens, and where each pod went and why."""

import asyncio
from collections.abc import Sequence

from cli.shared.screen import Screen
from cli.up.asked import Schedulers
from cli.up.clients.gateway import Gateway
from cli.up.clients.standin import StandIn
from cli.up.following import Following, Outcome, PodState
from cli.up.processes.stack import Addresses
from cli.up.reasons import why
from cli.up.result.interest import most_interesting
from cli.up.result.summary import by_problem, deletions, spread, totals

COLLECTING_SECONDS = 1.0
"""How long deletions are collected before they are shown together."""

MOST_PROBLEMS = 10
"""Problems of pods without a node that are shown, the most frequent ones."""


def show_addresses(screen: Screen, addresses: Addresses) -> None:
    """Show where everything listens; with TLS, the certificates are shown below."""
    is_plain = addresses.extender.startswith("http:")
    how = "-plaintext" if is_plain else "-cacert, -cert and -key of certs/operator,"
    services = addresses.services.items()
    rows = [
        ("gateway", addresses.extender, "kube-scheduler's extender: urlPrefix"),
        ("admin port", addresses.admin, "/readyz /metrics /decisions/NAMESPACE/POD"),
        (
            "inspector",
            f"{addresses.admin}/inspector/",
            "a page for the browser: who is where, and why",
        ),
        *((name, place, f"grpcurl {how} {place} list") for name, place in services),
    ]
    if addresses.api:
        rows.append(("API server", addresses.api, "kubectl, with the kubeconfig below"))
    screen.lines(("PROCESS", "ADDRESS", "FOR"), rows)


class Report:
    """Shows what became of pods, and asks the stand-in and the gateway why."""

    def __init__(
        self,
        screen: Screen,
        schedulers: Schedulers,
        scheduler: StandIn,
        gateway: Gateway,
        *,
        rows: int,
        nodes: int,
    ) -> None:
        """Write to *screen*.

        Args:
            screen: Where to.
            schedulers: Which schedulers ask Moorage.
            scheduler: The stand-in for kube-scheduler.
            gateway: The gateway.
            rows: How many pods the result shows; 0 for all.
            nodes: How many nodes there are.
        """
        self._screen = screen
        self._schedulers = schedulers
        self._scheduler = scheduler
        self._gateway = gateway
        self._rows = rows
        self._nodes = nodes
        self._deleted: list[PodState] = []

    async def result(self, following: Following) -> None:
        """Show the pods that had to be scheduled, or the most interesting ones, and a summary."""
        pods = following.pods
        if self._rows and len(pods) > self._rows:
            await self._table(await most_interesting(pods, self._rows, self._scheduler))
            rest = len(pods) - self._rows
            self._screen.sentence(f"... and {rest} more; --rows 0 shows all")
            await self._problems(pods)
        else:
            await self._table(pods)
        self._screen.write(totals(pods))
        for line in spread(pods, self._nodes, following.seconds):
            self._screen.sentence(line)
        for line in self._schedulers.summary(pod.scheduler for pod in pods):
            self._screen.sentence(line, style="yellow")
        if following.failing:
            self._screen.write("Scheduling fails; the table says why.", style="red")

    def totals(self, following: Following) -> None:
        """Show how many pods are bound."""
        self._screen.write(totals(following.pods))

    async def change(self, pod: PodState) -> None:
        """Show what became of one pod; deletions are collected and shown together."""
        if pod.outcome is Outcome.DELETED:
            if not self._deleted:
                asyncio.get_running_loop().call_later(COLLECTING_SECONDS, self.show_deleted)
            self._deleted.append(pod)
            return
        self._screen.sentence(
            f"{pod.namespace}/{pod.name} -> {_place(pod)}: {await self._reason(pod)}"
        )

    def show_deleted(self) -> None:
        """Show the deletions that were collected so far."""
        pods, self._deleted = self._deleted, []
        for line in deletions(pods):
            self._screen.sentence(line)

    async def _table(self, pods: Sequence[PodState]) -> None:
        rows = [(_name(pod), _place(pod), await self._reason(pod)) for pod in pods]
        if rows:
            self._screen.table(("POD", "NODE", "WHY"), rows)

    async def _problems(self, pods: Sequence[PodState]) -> None:
        groups = by_problem(pods)[:MOST_PROBLEMS]
        rows = [(_count(len(g)), _name(g[0]), await self._reason(g[0])) for g in groups]
        if rows:
            self._screen.table(("PENDING", "SUCH AS", "WHY"), rows)

    async def _reason(self, pod: PodState) -> str:
        place = (pod.namespace, pod.name)
        problem = self._schedulers.problem(pod.scheduler)
        decision = await self._scheduler.decision(*place)
        given = pod.node and not decision  # such as a pod that was created with a node
        if problem and not given and pod.outcome is not Outcome.DELETED:
            return f"{problem} ({pod.problem})" if pod.problem else problem
        return why(pod, decision, await self._gateway.decision(*place))


def _count(pods: int) -> str:
    return "1 pod" if pods == 1 else f"{pods} pods"


def _name(pod: PodState) -> str:
    return f"{pod.namespace}/{pod.name}"


def _place(pod: PodState) -> str:
    if pod.outcome is Outcome.DELETED:
        return "deleted"
    return pod.node or "pending"
