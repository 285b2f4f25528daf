"""Bind plugins, and what filter and score plugins keep for the bind of the same attempt."""

import asyncio

import pytest

from moorage import (
    Binding,
    BindPlugin,
    FilterPlugin,
    Node,
    PluginFailedError,
    Pod,
    Refusal,
    Rejection,
)
from moorage.plugin.hooks import extension_points
from moorage.testing import make_binding, make_node, make_pod, run_filter, run_pre_bind
from tests.passing import Passes

BINDING = make_binding(make_pod("web"), "n1")


class Volume(BindPlugin):
    """Waits for a volume."""

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        if binding.pod.labels.get("volume") != "ready":
            return Refusal("volume is not ready")
        binding.annotate("example.com/volume", f"{binding.namespace}-{binding.name}-{binding.node}")
        return None


class Tells(BindPlugin):
    """Acts afterwards."""

    async def post_bind(self, binding: Binding) -> None:
        """Tell nobody."""


class Both(Volume, Tells, Passes):
    """Is of two kinds."""


def test_the_points_are_those_that_a_class_overrides() -> None:
    assert extension_points(Volume) == ("PreBind",)
    assert extension_points(Tells) == ("PostBind",)
    assert extension_points(Both) == ("Filter", "PreBind", "PostBind")


def test_a_plugin_refuses_with_a_value() -> None:
    assert run_pre_bind(Volume(), BINDING) == Refusal("volume is not ready")


def test_a_plugin_adds_annotations_to_the_write() -> None:
    binding = make_binding(make_pod("web", labels={"volume": "ready"}), "n1")
    assert run_pre_bind(Volume(), binding) is None
    assert binding.annotations == {"example.com/volume": "default-web-n1"}


def test_an_annotation_that_is_no_text_is_a_failure() -> None:
    class Counts(BindPlugin):
        async def pre_bind(self, binding: Binding) -> Refusal | None:
            binding.annotate("example.com/count", 1)  # type: ignore[arg-type]
            return None

    with pytest.raises(PluginFailedError, match=r"an annotation is text.*test_bind_plugin.py"):
        run_pre_bind(Counts(), BINDING)


def test_a_pod_that_was_not_read_is_missed_with_advice() -> None:
    unread = Binding(namespace="default", name="web", uid="u", node="n1")
    with pytest.raises(PluginFailedError, match="leave `reads_pod` of the plugin at True"):
        run_pre_bind(Volume(), unread)


@pytest.mark.parametrize("answer", ["no", False, Refusal(1)])  # type: ignore[arg-type]
def test_wrong_answers_are_failures(answer: object) -> None:
    class Wrong(BindPlugin):
        async def pre_bind(self, binding: Binding) -> Refusal | None:
            return answer  # type: ignore[return-value]

    with pytest.raises(PluginFailedError, match="pre_bind must return"):
        run_pre_bind(Wrong(), BINDING)


async def test_it_must_not_be_run_in_a_coroutine_but_may_in_a_thread() -> None:
    with pytest.raises(RuntimeError, match="are synchronous"):
        run_pre_bind(Volume(), BINDING)
    assert await asyncio.to_thread(run_pre_bind, Volume(), BINDING)


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


def test_a_value_for_a_node_hides_that_for_all_and_the_last_one_counts() -> None:
    state = Chooses().cycle_state
    state.limit = 30
    for value in range(100):  # one takes the room of another
        state.write("key", value)
    state.write("key", "own", node="a")
    assert (state.at("a"), state.at("b")) == ({"key": "own"}, {"key": 99})


def test_too_much_is_a_failure_with_the_line() -> None:
    plugin = Chooses()
    plugin.cycle_state.limit = 8
    with pytest.raises(
        PluginFailedError, match=r"'pod' makes 14 bytes.* is 8 for node a \(.*test_bind_plugin.py:"
    ):
        run_filter(plugin, make_pod("twelve-chars"), *NODES)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [("key", object(), "cycle state 'key' must be JSON"), (1, 1, "a key .* is text, not int")],
)
def test_keys_are_text_and_values_are_json(key: str, value: object, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Chooses().cycle_state.write(key, value)
