"""What filter and score plugins keep for the bind of the same attempt."""

import pytest

from moorage import Binding, BindPlugin, FilterPlugin, Node, PluginFailedError, Pod, Rejection
from moorage.testing import make_binding, make_node, make_pod, run_filter, run_pre_bind

NODES = (make_node("a", labels={"device": "3"}), make_node("b"))


class Chooses(FilterPlugin):
    """Keeps the device of each node that has one, and the pod's name for all."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.cycle_state.write("pod", pod.name)
        if "device" in node.labels:
            self.cycle_state.write("device", int(node.labels["device"]), node=node)
        return None


class Writes(BindPlugin):
    """Writes what was kept."""

    async def pre_bind(self, binding: Binding) -> None:
        binding.annotate("kept", str(sorted(binding.cycle_state.items())))


def test_a_bind_gets_the_values_of_its_node_and_those_for_all() -> None:
    plugin, pod = Chooses(), make_pod("web")
    run_filter(plugin, pod, *NODES)
    assert plugin.cycle_state.at("a") == {"pod": "web", "device": 3}
    assert plugin.cycle_state.at("b") == {"pod": "web"}
    binding = make_binding(pod, "a", cycle_state=plugin.cycle_state.at("a"))
    run_pre_bind(Writes(), binding)
    assert binding.annotations == {"kept": "[('device', 3), ('pod', 'web')]"}


def test_each_cycle_begins_without_any() -> None:
    plugin = Chooses()
    run_filter(plugin, make_pod("web"), *NODES)
    run_filter(plugin, make_pod("db"), NODES[1])
    assert plugin.cycle_state.at("a") == {"pod": "db"}


def test_a_value_for_a_node_hides_that_for_all_and_the_last_one_counts() -> None:
    state = Chooses().cycle_state
    for value in (1, 2):
        state.write("key", value)
    state.write("key", "own", node="a")
    assert (state.at("a"), state.at("b")) == ({"key": "own"}, {"key": 2})


def test_too_much_is_a_failure_with_the_line() -> None:
    plugin = Chooses()
    plugin.cycle_state.limit = 8
    with pytest.raises(
        PluginFailedError, match=r"'pod' makes 14 bytes.* is 8 for node a \(.*test_cycle_state.py:"
    ):
        run_filter(plugin, make_pod("twelve-chars"), *NODES)


def test_replacing_a_value_takes_no_more_room() -> None:
    state = Chooses().cycle_state
    state.limit = 10
    for value in range(100):
        state.write("key", f"{value:06}")
    assert state.at("a") == {"key": "000099"}


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [("key", object(), "cycle state 'key' must be JSON"), (1, 1, "a key .* is text, not int")],
)
def test_keys_are_text_and_values_are_json(key: str, value: object, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Chooses().cycle_state.write(key, value)
