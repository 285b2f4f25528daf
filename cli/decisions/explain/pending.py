"""Shows why each pod without a node has none: one row a pod, those that wait longest first."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cli.shared.gateway.client import connected
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import Form, is_for_programs, write
from cli.shared.screen import Screen

MOST = 1000
"""Pods in one answer of the gateway."""


async def ask(namespace: str, options: GatewayOptions) -> Mapping[str, Any]:
    """Return what the gateway knows about pending pods of one namespace or, for "", of all.

    Raises:
        GatewayError: The gateway gives no answer; the message has the next step.
    """
    query = {"limit": str(MOST), **({"namespace": namespace} if namespace else {})}
    async with connected(options) as gateway:
        answer: Mapping[str, Any] = await gateway.get("/decisions/pending", query)
    return answer


def show(answer: Mapping[str, Any], output: Form) -> None:
    """Write to stdout; if it is "wide", with the schedulerName and what helps each pod."""
    if is_for_programs(output):
        write(answer, output)
        return
    screen, items, pods = Screen(), answer["items"], answer["pods"]
    if not items:
        screen.write("No pod is pending.")
        return
    header, wide = ["PENDING POD", "FOR"], output == "wide"
    rows = [[each["pod"], age(each["created"])] for each in items]
    if wide:
        header += ["SCHEDULER", "ATTEMPTS"]
        rows = [
            [*row, each["schedulerName"], str(each["attempts"])]
            for row, each in zip(rows, items, strict=True)
        ]
    why = (each["reason"] + _next(each) * wide for each in items)
    screen.table([*header, "WHY"], [[*row, text] for row, text in zip(rows, why, strict=True)])
    if pods > len(items):
        screen.sentence(f"{pods - len(items)} more pods are pending: -n NAMESPACE shows fewer")
    elif not wide:
        screen.legend("`moorage explain POD` has the evidence, and what helps; so has -o wide.")


def _next(item: Mapping[str, Any]) -> str:
    return f". Next: {item['next'][0]}" if item["next"] else ""


def age(time: str) -> str:
    """Return how long ago a time was, as kubectl writes it."""
    seconds = max(int((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()), 0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size * 2:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
