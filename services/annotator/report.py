"""What one round found and wrote, for people: a line for each node."""

import math
from collections.abc import Iterator

from moorage.units.durations import format_duration
from services.annotator.planning import Need
from services.annotator.rounds import Done, Result, Round
from services.annotator.settings import AnnotatorSettings

GIB = 1024**3


def report(ended: Round, settings: AnnotatorSettings) -> Iterator[str]:
    """Yield a line for each node, and the sum."""
    width = max((len(done.planned.node) for done in ended.nodes), default=0)
    for done in ended.nodes:
        cpu, memory = (_amount(done, settings.prefix, name) for name in ("cpu", "memory"))
        result = _result(done, dry_run=settings.dry_run)
        yield f"{done.planned.node:{width}}  cpu {cpu:12}  memory {memory:16}  {result}"
    if ended.unknown_nodes:
        yield (
            f"Prometheus measures {len(ended.unknown_nodes)} nodes that the cluster does not have, "
            f"such as {ended.unknown_nodes[0]}"
        )
    work = sum(done.planned.need.is_work for done in ended.nodes)
    written = f"{work} of {len(ended.nodes)} nodes to be written"
    if not settings.dry_run:
        written = f"{ended.count(Result.WRITTEN)} of {len(ended.nodes)} nodes written"
    others = (Need.NOT_MEASURED, Result.GONE, Result.FAILED)
    counts = (f"{count} {what}" for what in others if (count := ended.count(what)))
    yield ", ".join((written, f"{ended.count(Need.NONE)} unchanged", *counts))


def _amount(done: Done, prefix: str, resource: str) -> str:
    names = (f"{prefix}{form}-free-{resource}" for form in ("mean", "std"))
    found = [text for name in names if (text := done.planned.annotations[name]) is not None]
    if resource == "memory":
        return " ±".join(f"{float(text) / GIB:.2f}Gi" for text in found) or "-"
    return " ±".join(f"{text}m" for text in found) or "-"


def _result(done: Done, *, dry_run: bool) -> str:
    planned = done.planned
    age = "" if math.isnan(planned.age) else f", {format_duration(round(planned.age))} old"
    if not planned.need.is_work:
        return f"{planned.need}{age}"
    if done.result is Result.FAILED:
        return f"failed: {done.problem}"
    if done.result is Result.GONE:
        return "gone: it was deleted meanwhile"
    return f"{'would be written' if dry_run else 'written'}: {planned.need}"
