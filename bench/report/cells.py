"""What all tables share: how they are made, and how figures look."""

from rich.table import Table

from bench.figures import Figure


def titled(title: str, caption: str | None, *columns: str) -> Table:
    """Return a table whose first column has the names of the rows."""
    table = Table(title=title, caption=caption)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def pair(figure: Figure) -> str:
    """Return the median and the 99th percentile."""
    return f"{figure.p50:.2f} / {figure.p99:.2f}"
