"""The tables about sizing and cost, from the figures that `bench.report` put into the docs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from gateway.settings import GatewaySettings
from moorage_host.settings import parse_settings
from tools.docs.pages import DOCS, table

ROWS = {
    "no extender": "no extender",
    "go nothing": "Go that does nothing",
    "moorage": "Moorage, equal pods",
    "moorage, unlike pods": "Moorage, every pod different",
    "moorage, bindVerb": "Moorage with `bindVerb`",
}
"""The rows of the page of benchmarks by the names that they have in the table."""


def cost(_: str) -> str:
    """Return what is left of the pods a second with each extender, and what a pod costs there."""
    rows = [_section_table("cluster", title) for title in CLUSTERS.values()]
    pods = [pods_per_second(cluster) for cluster in CLUSTERS]
    return table(
        ("extender", "pods/s", "left", "ms of processor time"),
        (
            (
                text,
                " / ".join(str(each[row]) for each in pods),
                " / ".join(f"{100 * each[row] / each['no extender']:.0f}" for each in pods) + " %",
                " / ".join(dict.fromkeys(each[row][2].partition(" ")[0] for each in rows)),
            )
            for row, text in ROWS.items()
        ),
    )


def pods_per_second(cluster: str) -> dict[str, int]:
    """Return the pods a second of each row of a cluster."""
    rows = _section_table("cluster", CLUSTERS[cluster])
    return {name: int(cells[0]) for name, cells in rows.items() if name}


PAGE = DOCS / "reference" / "benchmarks.md"

PROCESSES = ("gateway", "filter", "scorer", "binder")
RATES = (10, 50)

MEMORY_REQUEST = 1.25
"""Of what was measured."""

MEMORY_LIMIT = 2.0
"""Of what was measured: while the policy changes or a new version comes, there is more."""

CPU_REQUEST = 1.5
"""Of what was measured."""

CLUSTERS = {name: f"Pods/s, {name} cluster, 5,000 nodes" for name in ("heavy", "light")}
"""The tables about both kinds of cluster."""

LEAST_CPU, CPU_STEP = 50, 50
MIB_STEP = 64

Cells = Mapping[str, Sequence[str]]
"""The cells of a table by the first one of each row."""


def sizing(name: str) -> str:
    """Return one of the page's tables."""
    return {"requests": _requests, "memory": _memory}[name]()


def _requests() -> str:
    cpu = _measured_cpu()
    rows = (
        (str(rate), *(_millicores(cpu[each] * rate * CPU_REQUEST) for each in PROCESSES))
        for rate in RATES
    )
    return table(("pods/s", *PROCESSES), rows)


def _memory() -> str:
    def cell(process: str, measured: float) -> str:
        whole = (measured * share + _decisions(process) for share in (MEMORY_REQUEST, MEMORY_LIMIT))
        return " / ".join(map(_mib, whole))

    rows = (
        (f"{nodes:,}", *(cell(each, found[each]) for each in PROCESSES))
        for nodes, found in _measured_memory().items()
    )
    return table(("nodes", *PROCESSES), rows)


def _decisions(process: str) -> float:
    """Return the MiB that decisions take once their memory is full, which it was not there."""
    if process != "gateway":
        return 0
    settings = parse_settings(GatewaySettings, "gateway", [], environ={})
    return (settings.decision_memory + settings.decision_array_memory) / 2**20


def _measured_memory() -> dict[int, dict[str, int]]:
    """Return the MiB (RSS) of each process by the number of nodes."""
    found = _section_table("growth", "Memory by cluster size")
    columns = [each.removesuffix("-1") for each in found[""]]
    return {
        int(size.partition(" ")[0].replace(",", "")): {
            name: int(_numbers(cell)[0]) for name, cell in zip(columns, cells, strict=True)
        }
        for size, cells in found.items()
        if size
    }


def _measured_cpu() -> dict[str, float]:
    """Return the most milliseconds that each process took for a pod of any kind."""
    most = dict.fromkeys(PROCESSES, 0.0)
    for title in CLUSTERS.values():
        for row, cells in _section_table("cluster", title).items():
            if row.startswith("moorage"):
                for process, milliseconds in re.findall(r"(\w+)(?:-1)? ([\d.]+)", cells[3]):
                    most[process] = max(most[process], float(milliseconds))
    return most


def _section_table(part: str, title: str) -> Cells:
    """Return a table of the page; its head is the row ""."""
    text = PAGE.read_text()
    section = text.partition(f"<!-- bench: {part} -->")[2].partition("<!-- end of bench")[0]
    lines = section.partition(f"#### {title}\n")[2].strip().splitlines()
    rows = list(_rows(lines))
    assert rows, f"{PAGE.name} has no table {title!r} of the part {part}"
    return {first: rest for first, *rest in rows}


def _rows(lines: Sequence[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not cells[0].startswith("---"):
            yield cells


def _numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d.,]*", text)]


def _mib(amount: float) -> str:
    return f"{ceil(amount / MIB_STEP) * MIB_STEP}Mi"


def _millicores(milliseconds: float) -> str:
    """Return what a process needs that works so many milliseconds of each second."""
    return f"{max(ceil(milliseconds / CPU_STEP) * CPU_STEP, LEAST_CPU)}m"
