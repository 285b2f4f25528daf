"""Shows an explanation, or why each pending pod has no node: as text, as JSON or as YAML."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from cli.decisions.explain import THE_GATEWAY
from cli.shared.output import Form, is_for_programs, write
from cli.shared.screen import Screen
from gateway.cycle.decision import Decision, NodeScoreRecord
from gateway.decisions.explanation import Explanation, RejectedNodes

SHOWN_EVENTS = 5


def show(found: Explanation, output: Form) -> None:
    """Write to stdout; if it is "wide", with every attempt that the gateway keeps."""
    if is_for_programs(output):
        write(found, output)
    else:
        _text(Screen(), found, wide=output == "wide")


def _text(screen: Screen, found: Explanation, *, wide: bool) -> None:
    without, _, why = found.without.partition(": ")
    if without == THE_GATEWAY and why not in found.headline:
        screen.sentence(f"Without {found.without}", style="red")
    is_pending = found.place.startswith("is pending")
    screen.sentence(found.headline, style="bold yellow" if is_pending else "bold")
    if found.since:
        screen.sentence(f"since {_ago(found.since)}")
    if found.group:
        screen.sentence(str(found.group))
    if found.rejections:
        screen.write("")
        rows = [(str(each.nodes), each.by, _helped(each)) for each in found.rejections]
        screen.table(("NODES", "REJECTED BY", "REASON"), rows)
    if found.preemption:
        screen.sentence(f"Preemption: {found.preemption}")
    shown = found.attempts if wide else found.attempts[:1]
    for number, attempt in enumerate(shown):
        screen.write("")
        _attempt(screen, attempt, found.headline, listed=bool(found.rejections and not number))
    if earlier := len(found.attempts) - len(shown):
        attempts = "attempt: -o wide shows it" if earlier == 1 else "attempts: -o wide shows them"
        screen.sentence(f"{earlier} earlier {attempts}")
    if found.events:
        screen.write("")
        rows = [(_ago(each.time), each.reason, each.note) for each in found.events]
        screen.table(("EVENT", "REASON", "NOTE"), rows if wide else rows[:SHOWN_EVENTS])
    if without and without != THE_GATEWAY:
        screen.sentence(f"Without {found.without}")
    if found.next:
        screen.write("")
        for step in found.next:
            screen.sentence(f"Next: {step}")


def _attempt(screen: Screen, attempt: Decision, headline: str, *, listed: bool) -> None:
    """Write an attempt; *listed* if what was rejected is on the screen already."""
    screen.sentence(", ".join(_circumstances(attempt)))
    for sentence in attempt.why:
        if sentence not in headline and " rejected " not in sentence:  # the table has those
            screen.sentence(f"  {sentence}")
    for phase in (attempt.filter, attempt.score):
        for plugin in phase.plugins if phase else ():
            if plugin.note:
                screen.sentence(f"  {plugin.plugin} notes: {plugin.note}")
    rejected = [] if listed else list(_rejected(attempt))
    if rejected:
        screen.table(("NODES", "PLUGIN", "REASON"), rejected)
    if attempt.score and attempt.score.top:
        screen.table(*_columns(attempt.score.top))
        best = attempt.score.top[0].total
        listed_ties = sum(each.total == best for each in attempt.score.top)
        if attempt.score.best > listed_ties:
            screen.sentence(f"{attempt.score.best} nodes tie for the best total, {best:.4g}")
        screen.legend(
            "A plugin's scores are from 0 to 100; xN is its weight, TOTAL the weighted mean."
        )


def _circumstances(attempt: Decision) -> Iterator[str]:
    yield f"Attempt {_ago(attempt.time)}: profile {attempt.profile}"
    if attempt.policy_revision:
        yield f"policy {attempt.policy_revision}"
    if filtered := attempt.filter:
        everywhere = attempt.cluster_nodes
        of = f" of {everywhere}" if everywhere > filtered.nodes else ""
        yield f"kube-scheduler offered {filtered.nodes}{of} nodes"
        yield f"{filtered.feasible} feasible"
    if claim := attempt.claim:
        yield f"{claim.node} claimed for {', '.join(claim.plugins)}"
    if bind := attempt.bind:
        yield f"bind to {bind.node} {'failed' if bind.error else 'done'}"


def _rejected(attempt: Decision) -> Iterator[tuple[str, str, str]]:
    for plugin in attempt.filter.plugins if attempt.filter else ():
        for each in plugin.reasons:
            in_vain = each.unresolvable or (attempt.group is not None and attempt.group.waits)
            helped = "" if in_vain else " (evicting pods may help)"
            yield str(each.nodes), plugin.plugin, f"{each.reason}{helped}"


def _helped(part: RejectedNodes) -> str:
    return f"{part.reason}{f' ({part.evicting})' if part.evicting else ''}"


def _columns(top: Sequence[NodeScoreRecord]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the best nodes, with a column for each plugin."""
    plugins = [(each.plugin, each.weight) for each in top[0].plugins]
    header = ["BEST NODES", "TOTAL", *(f"{name} x{weight}" for name, weight in plugins)]
    rows = [
        [each.node, f"{each.total:.4g}", *(f"{p.normalized:.4g}" for p in each.plugins)]
        for each in top
    ]
    return header, rows


def show_pending(items: Sequence[Explanation], pods: int, output: Form) -> None:
    """Write to stdout; if it is "wide", with the schedulerName and what helps each pod."""
    if is_for_programs(output):
        write({"items": items, "pods": pods}, output)
        return
    screen, header, wide = Screen(), ["PENDING POD", "FOR"], output == "wide"
    if not items:
        screen.write("No pod is pending.")
        return
    rows = [[each.pod, age(each.created)] for each in items]
    if wide:
        header += ["SCHEDULER", "ATTEMPTS"]
        rows = [
            [*row, each.scheduler_name, str(each.tried)]
            for row, each in zip(rows, items, strict=True)
        ]
    why = (each.reason + _next(each) * wide for each in items)
    screen.table([*header, "WHY"], [[*row, text] for row, text in zip(rows, why, strict=True)])
    if more := max(pods - len(items), 0):
        are = "pod is" if more == 1 else "pods are"
        screen.sentence(f"{more} more {are} pending: -n NAMESPACE shows fewer")
    elif not wide:
        screen.legend("`moorage explain POD` has the evidence, and what helps; so has -o wide.")


def _next(item: Explanation) -> str:
    if not item.next:
        return ""
    stop = "" if item.reason.endswith(("?", ".")) else "."
    return f"{stop} Next: {item.next[0]}"


def _ago(time: str | datetime) -> str:
    """Return a time of day and how long ago it was, such as "12:03:04 (5s ago)"."""
    try:
        found = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        return str(time)
    return f"{found:%H:%M:%S} ({age(found)} ago)"


def age(time: str | datetime) -> str:
    """Return how long ago a time was, as kubectl writes it."""
    begin = datetime.fromisoformat(time) if isinstance(time, str) else time
    seconds = max(int((datetime.now(UTC) - begin).total_seconds()), 0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size * 2:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
