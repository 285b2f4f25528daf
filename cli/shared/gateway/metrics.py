"""Reads Prometheus' text format: what a process has counted since it started."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


class Metrics:
    """The metrics of a process at one time."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        """Read the metrics in *text* whose names begin with one of *names*.

        Raises:
            ValueError: It is not in Prometheus' text format.
        """
        lines = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(names))
        self._values: Mapping[tuple[str, Labels], float] = {
            (each.name, frozenset(each.labels.items())): each.value
            for family in text_string_to_metric_families(lines)
            for each in family.samples
        }

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of the values with these labels, whatever other labels they have."""
        wanted = frozenset(labels.items())
        return sum(
            value
            for (found, labelled), value in self._values.items()
            if found == name and wanted <= labelled
        )

    def values_of(self, name: str, *labels: str) -> list[tuple[str, ...]]:
        """Return the values of *labels* that a metric has, in order."""
        found = {
            tuple(dict(labelled).get(label, "") for label in labels)
            for key, labelled in self._values
            if key == name
        }
        return sorted(found)
