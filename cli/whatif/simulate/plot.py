"""Draws how full the nodes are, before and after, as SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.shared.drawing.svg import lines, stacked
from cli.whatif.simulate.run import Result
from moorage.errors import ConfigurationError

POINTS = 60
"""Points of a line; with more nodes, some are left out."""


def write_plot(result: Result, path: Path) -> None:
    """Write a chart for each resource: the nodes by how full they are, the fullest first.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    charts = []
    for resource in result.before.resources:
        series = {"before": result.shares} | {
            _name(result, each.name): each.shares for each in result.variants
        }
        charts.append(
            lines(
                f"{resource} requested on each node, the fullest first",
                {name: _sampled(shares, resource) for name, shares in series.items()},
                "%",
                top=max(
                    100.0, *(share for shares in series.values() for share in shares[resource])
                ),
            )
        )
    try:
        path.write_text(stacked(charts), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error


def _name(result: Result, name: str) -> str:
    return name if len(result.variants) > 1 else "after"


def _sampled(shares: Mapping[str, Sequence[float]], resource: str) -> list[tuple[float, float]]:
    values = shares[resource]
    last = len(values) - 1
    places = (
        sorted({round(step * last / POINTS) for step in range(POINTS + 1)}) if last > 0 else [0]
    )
    return [(place + 1, values[place]) for place in places]
