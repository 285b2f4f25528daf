"""Shows an explanation, or why each pending pod has no node: as text, as JSON or as YAML."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from cli.decisions.explain import Explained
from cli.shared.gateway.client import connected
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import Form, is_for_programs, write
from cli.shared.screen import Screen
from gateway.decisions.known import Object, last_seen
from gateway.decisions.rejections import Rejection

SHOWN_EVENTS = 5

MOST_PENDING = 1000
"""Pods in one answer of the gateway."""

PREEMPTIBLE = " (evicting pods may help)"


def show(explained: Explained, output: Form) -> None:
    """Write to stdout; if it is "wide", with every attempt that the gateway keeps."""
    if is_for_programs(output):
        write(_content(explained), output)
    else:
        _text(Screen(), explained, wide=output == "wide")


def _content(explained: Explained) -> dict[str, object]:
    known, found = explained.known, explained.found
    return {
        **found.content(),
        "uid": known.pod["metadata"].get("uid", ""),
        "node": known.pod["spec"].get("nodeName") or "",
        "reason": found.headline,
        "podGroup": known.group and msgspec.to_builtins(known.group),
        "attempts": list(known.attempts),
        "views": list(known.views),
        "noAttempts": known.silence,
        "events": [
            {"reason": each["reason"], "note": each.get("note", ""), "time": last_seen(each)}
            for each in known.events
        ],
    }


def _text(screen: Screen, explained: Explained, *, wide: bool) -> None:
    known, found = explained.known, explained.found
    if not known.asked and known.silence not in found.headline:
        screen.sentence(f"Without the gateway: {known.silence}", style="red")
    is_pending = not known.is_gone and not known.pod["spec"].get("nodeName")
    screen.sentence(found.headline, style="bold yellow" if is_pending else "bold")
    if found.since:
        screen.sentence(f"since {_ago(found.since)}")
    if known.group:
        screen.sentence(str(known.group))
    rejected = found.rejections
    if rejected.parts:
        screen.write("")
        rows = [(str(part.nodes), part.by, _helped(part)) for part in rejected.parts]
        screen.table(("NODES", "REJECTED BY", "REASON"), rows)
    if rejected.preemption:
        screen.sentence(f"Preemption: {rejected.preemption}")
    shown = known.attempts if wide else known.attempts[:1]
    for number, attempt in enumerate(shown):
        screen.write("")
        _attempt(screen, attempt, found.headline, listed=bool(rejected.parts and not number))
    if len(known.attempts) > len(shown):
        screen.sentence(f"{len(known.attempts) - len(shown)} earlier attempts: -o wide shows them")
    if known.events:
        screen.write("")
        rows = [(_ago(last_seen(e)), e["reason"], e.get("note", "")) for e in known.events]
        screen.table(("EVENT", "REASON", "NOTE"), rows if wide else rows[:SHOWN_EVENTS])
    if explained.lacking:
        screen.sentence(f"Without Events, pod groups and ResourceClaims: {explained.lacking}")
    if found.next:
        screen.write("")
        for step in found.next:
            screen.sentence(f"Next: {step}")


def _helped(part: Rejection) -> str:
    return f"{part.reason}{PREEMPTIBLE if part.preemptible else ''}"


def _attempt(screen: Screen, attempt: Object, headline: str, *, listed: bool) -> None:
    """Write an attempt; *listed* if what was rejected is on the screen already."""
    screen.sentence(", ".join(_circumstances(attempt)))
    for sentence in attempt.get("why") or ():
        if sentence not in headline and " rejected " not in sentence:  # the table has those
            screen.sentence(f"  {sentence}")
    rejected = [] if listed else list(_rejected(attempt))
    if rejected:
        screen.table(("NODES", "PLUGIN", "REASON"), rejected)
    if scored := list(_scores(attempt)):
        screen.table(*_columns(scored))
        screen.legend(
            "A plugin's scores are from 0 to 100; xN is its weight, TOTAL the weighted mean."
        )


def _circumstances(attempt: Object) -> Iterator[str]:
    yield f"Attempt {_ago(attempt['time'])}: profile {attempt['profile']}"
    if attempt.get("policyRevision"):
        yield f"policy {attempt['policyRevision']}"
    if filtered := attempt.get("filter"):
        everywhere = attempt.get("clusterNodes", 0)
        of = f" of {everywhere}" if everywhere > filtered["nodes"] else ""
        yield f"kube-scheduler offered {filtered['nodes']}{of} nodes"
        yield f"{filtered['feasible']} feasible"
    if claim := attempt.get("claim"):
        yield f"{claim['node']} claimed for {', '.join(claim['plugins'])}"
    if bind := attempt.get("bind"):
        yield f"bind to {bind['node']} {'failed' if bind.get('error') else 'done'}"


def _rejected(attempt: Object) -> Iterator[tuple[str, str, str]]:
    for plugin in (attempt.get("filter") or {}).get("plugins") or ():
        for each in plugin.get("reasons") or ():
            helped = "" if each.get("unresolvable") else PREEMPTIBLE
            yield str(each["nodes"]), plugin["plugin"], f"{each['reason']}{helped}"


def _scores(attempt: Object) -> Iterator[Object]:
    yield from (attempt.get("score") or {}).get("top") or ()


def _columns(top: Sequence[Object]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the best nodes, with a column for each plugin."""
    plugins = [(each["plugin"], each["weight"]) for each in top[0]["plugins"]]
    header = ["BEST NODES", "TOTAL", *(f"{name} x{weight}" for name, weight in plugins)]
    rows = [
        [each["node"], f"{each['total']:.4g}", *(f"{p['normalized']:.4g}" for p in each["plugins"])]
        for each in top
    ]
    return header, rows


def _ago(time: str) -> str:
    """Return a time of day and how long ago it was, such as "12:03:04 (5s ago)"."""
    try:
        return f"{datetime.fromisoformat(time):%H:%M:%S} ({age(time)} ago)"
    except ValueError:
        return time


async def ask_pending(namespace: str, options: GatewayOptions) -> Mapping[str, Any]:
    """Return what the gateway knows about pending pods of one namespace or, for "", of all.

    Raises:
        GatewayError: The gateway gives no answer; the message has the next step.
    """
    query = {"limit": str(MOST_PENDING), **({"namespace": namespace} if namespace else {})}
    async with connected(options) as gateway:
        answer: Mapping[str, Any] = await gateway.get("/decisions/pending", query)
    return answer


def show_pending(answer: Mapping[str, Any], output: Form) -> None:
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
