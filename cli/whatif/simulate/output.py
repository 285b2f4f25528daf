"""Shows what a simulation found out."""

from collections import Counter
from collections.abc import Iterator, Sequence

from cli.shared.screen import Screen
from cli.whatif.simulate.placing import SimulatedPlacement
from cli.whatif.simulate.run import Measures, Result, Variant

ROWS = 20
"""Pods in each table."""

MOST_REASONS = 10
"""Reasons of pending pods that are shown, the most frequent ones."""

GIB = 1 << 30


def show(result: Result) -> None:
    """Write text to stdout."""
    screen = Screen()
    for note in _notes(result):
        screen.sentence(f"Note: {note}")
    screen.sentence(f"{result.pods} pods on {result.before.nodes} nodes of {result.cluster}")
    for variant in result.policies:
        screen.sentence(f"{_label(result, variant)}: {_pace(variant)}")
    screen.write("")
    header = ["", "BEFORE", *(each.name if _two(result) else "AFTER" for each in result.policies)]
    screen.table(header, list(_figures(result)))
    for variant in result.policies:
        _show_pending(screen, result, variant)
    if _two(result):
        _show_moved(screen, result)
    else:
        _show_placements(screen, result.policies[0])


def _notes(result: Result) -> Iterator[str]:
    yield from result.notes
    for variant in result.policies:
        prefix = f"{variant.name}: " if _two(result) else ""
        yield from (f"{prefix}{note}" for note in variant.notes)


def _label(result: Result, variant: Variant) -> str:
    return f"{variant.name} ({variant.policy})" if _two(result) else variant.policy


def _pace(variant: Variant) -> str:
    rate = variant.attempts / variant.seconds if variant.seconds else 0.0
    return f"{variant.attempts} scheduling cycles in {variant.seconds:.1f} s, {rate:.0f} a second"


def _two(result: Result) -> bool:
    return len(result.policies) > 1


def _figures(result: Result) -> Iterator[Sequence[str]]:
    yield "pods placed", "", *(str(each.placed) for each in result.policies)
    yield "pods pending", "", *(str(each.pending) for each in result.policies)
    states = [result.before, *(each.after for each in result.policies)]
    yield "nodes used", *(str(each.nodes_used) for each in states)
    yield "nodes free", *(str(each.nodes - each.nodes_used) for each in states)
    for name in result.before.resources:
        yield from _resource(name, states)


def _resource(name: str, states: Sequence[Measures]) -> Iterator[Sequence[str]]:
    uses = [each.resources[name] for each in states]
    yield f"{name} requested", *(f"{each.used:.1%}" for each in uses)
    yield f"{name} std dev over nodes", *(f"{each.std_dev:.1%}" for each in uses)
    yield f"{name} largest free block", *(amount(name, each.largest_free) for each in uses)


def amount(resource: str, value: int) -> str:
    """Return an amount as people write it."""
    if resource == "cpu":
        return f"{value / 1000:g}"
    if resource in ("memory", "ephemeral-storage"):
        return f"{value / GIB:.1f}Gi"
    return str(value)


def _show_pending(screen: Screen, result: Result, variant: Variant) -> None:
    pending = [each for each in variant.placements if not each.node]
    if not pending:
        return
    counts = Counter(each.reason for each in pending)
    first = {each.reason: each.pod for each in reversed(pending)}
    screen.write("")
    screen.sentence(f"Pending{f' with {variant.name}' if _two(result) else ''}: {len(pending)}")
    rows = [(str(n), first[why], why) for why, n in counts.most_common(MOST_REASONS)]
    screen.table(("PODS", "FOR EXAMPLE", "WHY"), rows)
    if len(counts) > len(rows):
        screen.sentence(f"{len(counts) - len(rows)} more reasons: -o json has them")


def _show_moved(screen: Screen, result: Result) -> None:
    moved = result.moved
    screen.write("")
    screen.sentence(f"Placed differently: {len(moved)} of {result.pods} pods")
    if not moved:
        return
    one, other = ({each.pod: each for each in v.placements} for v in result.policies)
    shown = moved[:ROWS]
    table = [(pod, one[pod].node or "-", other[pod].node or "-", _why(other[pod])) for pod in shown]
    screen.table(("POD", "A", "B", "WHY B DIFFERS"), table)
    if len(shown) < len(moved):
        screen.sentence(f"{len(moved) - len(shown)} more: -o json has them")


def _why(placement: SimulatedPlacement) -> str:
    return placement.why_not_there or placement.reason


def _show_placements(screen: Screen, variant: Variant) -> None:
    placed = [each for each in variant.placements if each.node]
    shown = placed[:ROWS]
    if not shown:
        return
    screen.write("")
    screen.table(("POD", "NODE"), [(each.pod, each.node) for each in shown])
    if len(shown) < len(placed):
        screen.sentence(f"{len(placed) - len(shown)} more: -o json has them")
