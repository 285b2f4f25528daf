"""The output of `moorage up`: where everything listens, and where each pod went and why."""

from cli.screen import Screen
from cli.up.asked import Schedulers
from cli.up.following import Following, Outcome, PodState
from cli.up.gateway import Gateway
from cli.up.reasons import why
from cli.up.stack import Addresses
from cli.up.standin import StandIn


def show_addresses(screen: Screen, addresses: Addresses) -> None:
    """Show where everything listens."""
    rows = [
        ("gateway", addresses.extender, "kube-scheduler's extender: urlPrefix"),
        ("admin port", addresses.admin, "/readyz /metrics /decisions/NAMESPACE/POD"),
        *((n, p, f"grpcurl -plaintext {p} list") for n, p in addresses.services.items()),
    ]
    if addresses.api:
        rows.append(("API server", addresses.api, "kubectl, with the kubeconfig below"))
    screen.lines(("PROCESS", "ADDRESS", "FOR"), rows)
    screen.write(f"export KUBECONFIG={addresses.kubeconfig}")


async def show_result(
    screen: Screen,
    following: Following,
    schedulers: Schedulers,
    scheduler: StandIn,
    gateway: Gateway,
) -> None:
    """Show the pods that had to be scheduled; if they are too many, the pending ones first."""
    pods, shown = following.pods, screen.most_rows
    if len(pods) > shown:
        pods.sort(key=lambda pod: pod.outcome is Outcome.BOUND)
    rows = [
        (
            f"{pod.namespace}/{pod.name}",
            _place(pod),
            await _reason(pod, schedulers, scheduler, gateway),
        )
        for pod in pods[:shown]
    ]
    if rows:
        screen.table(("POD", "NODE", "WHY"), rows)
    if len(pods) > shown:
        screen.write(f"... and {len(pods) - shown} more")
    bound = sum(pod.outcome is Outcome.BOUND for pod in pods)
    deleted = sum(pod.outcome is Outcome.DELETED for pod in pods)
    screen.write(
        f"{bound} of {len(pods)} pods bound, {len(pods) - bound - deleted} pending"
        + (f", {deleted} deleted" if deleted else "")
    )
    for line in schedulers.summary(pod.scheduler for pod in pods):
        screen.write(line, style="yellow")
    if following.failing:
        screen.write("Scheduling fails; the table says why.", style="red")


async def show_change(
    screen: Screen, pod: PodState, schedulers: Schedulers, scheduler: StandIn, gateway: Gateway
) -> None:
    """Show what became of one pod."""
    reason = await _reason(pod, schedulers, scheduler, gateway)
    screen.write(f"{pod.namespace}/{pod.name} -> {_place(pod)}: {reason}")


async def _reason(
    pod: PodState, schedulers: Schedulers, scheduler: StandIn, gateway: Gateway
) -> str:
    place = (pod.namespace, pod.name)
    problem = schedulers.problem(pod.scheduler)
    if problem and pod.outcome is not Outcome.DELETED:
        return f"{problem} ({pod.problem})" if pod.problem else problem
    return why(pod, await scheduler.decision(*place), await gateway.decision(*place))


def _place(pod: PodState) -> str:
    if pod.outcome is Outcome.DELETED:
        return "deleted"
    return pod.node or "pending"
