"""What would cure a rejection: plugins say it, nothing is taken for granted."""

import asyncio
from typing import Any

import pytest

from moorage import FilterPlugin, Node, Nodes, PluginFailedError, Pod, Rejection, Verdicts
from moorage.execution import EnabledPlugin, Profile, Supervisor, run_filter_plugins
from moorage.testing import make_node, make_nodes, make_pod, run_filter
from services.filter.plugins import BUILT_INS


class Silent(FilterPlugin):
    """Says nothing of a cure, unless the pod has it say something."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        cure: Any = pod.annotations.get("cured-by")
        return Rejection("no", cured_by=cure)


class ByCapacity(Silent):
    """Is cured by a new node, unless a rejection says otherwise."""

    cured_by = "capacity"


class Columns(FilterPlugin):
    """The same for all nodes at once."""

    cured_by = "capacity"

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        return (
            nodes.verdicts()
            .reject([True, False], "no")
            .reject([False, True], Rejection("never", cured_by="nothing"))
        )


@pytest.mark.parametrize(
    ("kind", "annotations", "cures"),
    [
        (Silent, {}, [""]),
        (Silent, {"cured-by": "capacity"}, ["capacity"]),
        (Silent, {"cured-by": "nothing"}, [""]),
        (ByCapacity, {}, ["capacity"]),
        (ByCapacity, {"cured-by": "nothing"}, [""]),
        (Columns, {}, ["capacity", ""]),
    ],
)
def test_a_rejection_says_it_or_its_plugin_does(
    kind: type[FilterPlugin], annotations: dict[str, str], cures: list[str]
) -> None:
    enabled = EnabledPlugin(plugin=kind(), aborts=True, time_budget=float("inf"))
    profile = Profile(name="p", plugins=(enabled,))
    nodes = make_nodes(make_node("a"), make_node("b"))
    pod = make_pod(annotations=annotations)
    run = asyncio.run(run_filter_plugins(profile, pod, nodes, Supervisor()))
    assert [each.cured_by for each in run.reasons] == cures


def test_what_cures_nothing_is_refused() -> None:
    with pytest.raises(PluginFailedError, match=r"cured_by is one of .* or None, not 'money'"):
        run_filter(Silent(), make_pod(annotations={"cured-by": "money"}), make_node())
    with pytest.raises(TypeError, match=r"Wrong\.cured_by is one of \('capacity', 'nothing'\)"):
        type("Wrong", (Silent,), {"cured_by": "nodes"})


def test_built_in_plugins_say_what_a_new_node_cures() -> None:
    by_class = {kind.name: kind.cured_by for kind in BUILT_INS}
    assert {name for name, cure in by_class.items() if cure == "capacity"} == {"NodeGroup"}
