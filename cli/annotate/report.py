"""The table of `moorage annotate --once`: what was measured of each node, and was it written."""

import math
from collections.abc import Iterator

from cli.annotate.options import AnnotateOptions
from cli.annotate.planning import Need
from cli.annotate.rounds import Done, Result, Round
from cli.shared.screen import Screen
from moorage.units.durations import format_duration

GIB = 1024**3

_ORDER = (Need.NOT_MEASURED, Need.NEW, Need.CHANGED, Need.AGED, Need.NONE)


def show_round(screen: Screen, ended: Round, options: AnnotateOptions) -> None:
    """Show the nodes, if they are too many those first that something is wrong with."""
    nodes, most = list(ended.nodes), screen.most_rows
    if len(nodes) > most:
        nodes.sort(key=_urgency)
    if nodes:
        rows = [_row(done, options) for done in nodes[:most]]
        screen.table(("NODE", "CPU FREE", "MEMORY FREE", "RESULT"), rows)
    if len(nodes) > most:
        screen.write(f"... and {len(nodes) - most} more")
    if ended.unknown_nodes:
        screen.write(
            f"Prometheus measures {len(ended.unknown_nodes)} nodes that the cluster does not have, "
            f"such as {ended.unknown_nodes[0]}"
        )
    screen.write(", ".join(_summary(ended, options)))


def _row(done: Done, options: AnnotateOptions) -> tuple[str, str, str, str]:
    return (
        done.planned.node,
        _amount(done, options.prefix, "cpu"),
        _amount(done, options.prefix, "memory"),
        _result(done, dry_run=options.dry_run),
    )


def _amount(done: Done, prefix: str, resource: str) -> str:
    found = (
        done.planned.annotations[f"{prefix}{form}-free-{resource}"] for form in ("mean", "std")
    )
    shown = (_shown(resource, float(text)) for text in found if text is not None)
    return " ±".join(shown) or "-"


def _shown(resource: str, amount: float) -> str:
    return f"{amount:.0f}m" if resource == "cpu" else f"{amount / GIB:.2f}Gi"


def _result(done: Done, *, dry_run: bool) -> str:
    planned = done.planned
    if planned.need is Need.NOT_MEASURED:
        return "not measured" + _age(planned.age)
    if done.result is Result.FAILED:
        return f"failed: {done.problem}"
    if done.result is Result.GONE:
        return "gone: it was deleted meanwhile"
    if not planned.need.is_work:
        return "unchanged" + _age(planned.age)
    return f"{'would be written' if dry_run else 'written'}: {planned.need}"


def _age(seconds: float) -> str:
    if math.isnan(seconds):
        return ""
    return f", annotations are {format_duration(round(seconds))} old"


def _urgency(done: Done) -> tuple[bool, int]:
    return done.result is not Result.FAILED, _ORDER.index(done.planned.need)


def _summary(ended: Round, options: AnnotateOptions) -> Iterator[str]:
    work = sum(done.planned.need.is_work for done in ended.nodes)
    written = work if options.dry_run else ended.count(Result.WRITTEN)
    yield f"{written} of {len(ended.nodes)} nodes {'to be ' if options.dry_run else ''}written"
    yield f"{ended.count(Need.NONE)} unchanged"
    for what in (Need.NOT_MEASURED, Result.GONE, Result.FAILED):
        if count := ended.count(what):
            yield f"{count} {what}"
