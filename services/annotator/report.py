"""What one round found and wrote, for people: a line for each node."""

import math
from collections.abc import Iterator

from moorage.units.durations import format_duration
from services.annotator.planning import Need, Planned, Result
from services.annotator.rounds import Round
from services.annotator.settings import AnnotatorSettings

GIB = 1024**3


def report(ended: Round, settings: AnnotatorSettings) -> Iterator[str]:
    """Yield a line for each node, and the sum."""
    width = max((len(each.node) for each in ended.nodes), default=0)
    for each in ended.nodes:
        cpu, memory = (_amount(each, settings.prefix, name) for name in ("cpu", "memory"))
        result = _result(each, dry_run=settings.dry_run)
        yield f"{each.node:{width}}  cpu {cpu:12}  memory {memory:16}  {result}"
    if ended.unknown_nodes:
        yield (
            f"Prometheus measures {len(ended.unknown_nodes)} nodes that the cluster does not have, "
            f"such as {ended.unknown_nodes[0]}"
        )
    work = sum(each.need.is_work for each in ended.nodes)
    written = f"{work} of {len(ended.nodes)} nodes to be written"
    if not settings.dry_run:
        written = f"{ended.count(Result.WRITTEN)} of {len(ended.nodes)} nodes written"
    others = (Need.NOT_MEASURED, Result.GONE, Result.FAILED)
    counts = (f"{count} {what}" for what in others if (count := ended.count(what)))
    yield ", ".join((written, f"{ended.count(Need.NONE)} unchanged", *counts))


def _amount(each: Planned, prefix: str, resource: str) -> str:
    names = (f"{prefix}{form}-free-{resource}" for form in ("mean", "std"))
    found = [text for name in names if (text := each.annotations[name]) is not None]
    if resource == "memory":
        return " ±".join(f"{float(text) / GIB:.2f}Gi" for text in found) or "-"
    return " ±".join(f"{text}m" for text in found) or "-"


def _result(each: Planned, *, dry_run: bool) -> str:
    age = "" if math.isnan(each.age) else f", {format_duration(round(each.age))} old"
    if not each.need.is_work:
        return f"{each.need}{age}"
    if each.result is Result.FAILED:
        return f"failed: {each.problem}"
    if each.result is Result.GONE:
        return "gone: it was deleted meanwhile"
    return f"{'would be written' if dry_run else 'written'}: {each.need}"
