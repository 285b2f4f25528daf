"""Queries that several panels have alike. All take rates over Grafana's own interval."""

from tools.monitoring.dashboards.model import OWN, Query


def rate(metric: str, *labels: str, where: str = "", legend: str = "") -> Query:
    """Return how often something happens each second, by labels."""
    selector = f"{metric}{{{_selector(where)}}}"
    return Query(
        expression=f"{_sum(labels)} (rate({selector}[$__rate_interval]))",
        legend=legend or _legend(labels),
    )


def rare(metric: str, *labels: str, where: str = "") -> Query:
    """Return the same without what did not happen: many results are counted from 0 on."""
    query = rate(metric, *labels, where=where)
    return Query(expression=f"{query.expression} > 0", legend=query.legend)


def quantile(
    share: float, histogram: str, *labels: str, where: str = "", legend: str = ""
) -> Query:
    """Return a quantile of a histogram, by labels."""
    selector = f"{histogram}_bucket{{{_selector(where)}}}"
    inner = f"{_sum((*labels, 'le'))} (rate({selector}[$__rate_interval]))"
    name = f"p{share * 100:g}"
    return Query(
        expression=f"histogram_quantile({share}, {inner})",
        legend=legend or (f"{_legend(labels)} {name}" if labels else name),
    )


def quantiles(histogram: str, *labels: str, where: str = "") -> list[Query]:
    """Return median, p90 and p99."""
    return [quantile(share, histogram, *labels, where=where) for share in (0.5, 0.9, 0.99)]


def share(part: str, whole: str, *labels: str, legend: str = "") -> Query:
    """Return which share of one counter another one is, by labels of the first."""
    above = f"{_sum(labels)} (rate({part}{{{OWN}}}[$__rate_interval]))"
    below = f"scalar(sum(rate({whole}{{{OWN}}}[$__rate_interval])))"
    return Query(expression=f"{above} / {below}", legend=legend or _legend(labels))


def value(metric: str, *labels: str, by: str = "sum", where: str = "", legend: str = "") -> Query:
    """Return a gauge, by labels."""
    grouped = f"{by} by ({', '.join(labels)})" if labels else by
    return Query(
        expression=f"{grouped} ({metric}{{{_selector(where)}}})", legend=legend or _legend(labels)
    )


def age(metric: str, *labels: str) -> Query:
    """Return how many seconds a point in time is ago, by labels; it is 0 until there is one."""
    grouped = f"max by ({', '.join(labels)})" if labels else "max"
    return Query(expression=f"{grouped} (time() - ({metric}{{{OWN}}} > 0))", legend=_legend(labels))


def _selector(where: str) -> str:
    return f"{OWN},{where}" if where else OWN


def _sum(labels: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(labels)})" if labels else "sum"


def _legend(labels: tuple[str, ...]) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in labels)
