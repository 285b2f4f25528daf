"""Bars and lines as SVG."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

WIDTH, ROW, LEFT, RIGHT, TOP = 860, 24, 250, 130, 46
HEIGHT, BOTTOM = 420, 60
COLOURS = ("#6b7280", "#2563eb", "#d97706", "#059669", "#9333ea")
GREY, BLUE, ORANGE, GREEN, PURPLE = COLOURS
FAMILIES = {
    **dict.fromkeys(("go ", "no extender", "1 scorer"), GREY),
    "floor": ORANGE,
    **dict.fromkeys(("numbered", "by default", "empty profile"), GREEN),
    "per node": PURPLE,
}
"""Colours of bars by what is in their names; the others are blue."""
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def bars(title: str, values: Mapping[str, tuple[float, float]], unit: str) -> str:
    """Draw a bar up to each first value, and a thin line from there to the second."""
    longest = max(high for _, high in values.values())
    scale = (WIDTH - LEFT - RIGHT) / longest
    parts = [_text(16, 26, title, bold=True)]
    for index, (name, (low, high)) in enumerate(values.items()):
        y, colour = TOP + index * ROW, _colour(name)
        middle, end = y + ROW / 2 - 3, LEFT + high * scale
        parts += [
            _text(LEFT - 8, y + 14, name, anchor="end"),
            _bar(y, low * scale, colour),
            _line(LEFT + low * scale, middle, end, middle, colour),
            _text(end + 6, y + 14, f"{low:.1f} / {high:.1f} {unit}"),
        ]
    return _svg(TOP + len(values) * ROW + 12, parts)


def _colour(name: str) -> str:
    return next((colour for part, colour in FAMILIES.items() if part in name), BLUE)


def lines(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    unit: str,
    across: str = "nodes",
    top: float = 0.0,
) -> str:
    """Draw values over sizes or times, both from 0, so that what is linear looks so.

    The axis of values goes up to *top*, or to the largest value.
    """
    points = [point for one in series.values() for point in one]
    right = max(x for x, _ in points) or 1.0
    top = top or max(y for _, y in points) or 1.0
    parts = [_text(16, 26, title, bold=True), *_axes(right, top, unit, across)]
    for index, (name, one) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        places = [(_x(x, right), _y(y, top)) for x, y in one]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(_text(WIDTH - RIGHT + 12, TOP + 14 + 20 * index, name, colour=colour))
    return _svg(HEIGHT, parts)


def _axes(right: float, top: float, unit: str, across: str) -> Iterator[str]:
    for step in range(5):
        x, y = right * step / 4, top * step / 4
        yield _text(_x(x, right), HEIGHT - BOTTOM + 20, f"{x:,.0f}", anchor="middle")
        yield _text(60, _y(y, top) + 4, f"{y:,.0f}", anchor="end")
        yield _line(66, _y(y, top), WIDTH - RIGHT, _y(y, top), "#e5e7eb")
    yield _text(_x(right / 2, right), HEIGHT - 14, across, anchor="middle")
    yield _text(60, TOP - 2, unit, anchor="end")


def _x(value: float, largest: float) -> float:
    return 66 + (WIDTH - RIGHT - 66) * value / largest


def _y(value: float, largest: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP - 10) * value / largest


def _bar(y: float, width: float, colour: str) -> str:
    return f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{ROW - 6}" fill="{colour}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="1.5"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    bold: bool = False,
    colour: str = "#111",
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}"{weight}>{escape(text)}</text>'


def _svg(height: float, parts: Iterable[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def stacked(drawings: Sequence[str]) -> str:
    """Put drawings below each other."""
    heights = [int(drawing.partition(' height="')[2].partition('"')[0]) for drawing in drawings]
    tops = [sum(heights[:index]) for index in range(len(heights))]
    placed = [
        drawing.rstrip().replace("<svg ", f'<svg y="{top}" ', 1)
        for drawing, top in zip(drawings, tops, strict=True)
    ]
    return _svg(sum(heights), placed)
