"""The texts of a bind plugin that waits for other pods; used by `cli.skeleton.texts`."""

PERMIT = '''\
"""The bind plugin $plugin."""

from typing import Annotated

from moorage import $imports


class $plugin(BindPlugin):
    """Binds pods with the same value of a group label together or not at all.

    Pods that come at different times need a filter in the same class as well: see
    "Waiting for other pods" in Moorage's docs/how-to/plugins/bind.md.
    """

    class Args(Arguments):
        """The key of the label, and how many pods have to come."""

        label: Annotated[str, Meta(min_length=1)] = "example.com/group"
        size: Annotated[int, Meta(ge=1)] = 2

    reads_snapshot = True

    def permit_key(self, binding: Binding) -> str:
        """Return what binds that wait for each other have in common; "" for none."""
        group = binding.pod.labels.get(self.args.label)
        return f"{binding.namespace}/{group}" if group else ""

    async def permit(self, binding: Binding) -> Allow | Wait:
        """Allow the bind once enough pods have come or run already."""
        group = binding.pod.labels.get(self.args.label)
        if not group:
            return Allow()
        present = {each.uid for each in binding.arrived}
        for node in binding.nodes:
            for pod in node.pods:
                same = pod.labels.get(self.args.label) == group
                same = same and pod.namespace == binding.namespace
                if same and pod.status.phase == "Running":
                    present.add(pod.uid)
        if len(present) >= self.args.size:
            return Allow()
        return Wait(3, awaited="the pods of its group")
'''

TEST_PERMIT = '''\
"""The bind plugin $plugin."""

from moorage import Allow, Binding, Wait
from moorage.testing import make_binding, make_node, make_nodes, make_pod, run_permit

from $module import $plugin

GROUP = {"example.com/group": "train"}
WAIT = Wait(3, awaited="the pods of its group")


def member(name: str) -> Binding:
    nodes = make_nodes(make_node("a"))
    return make_binding(make_pod(name, labels=GROUP), "a", nodes=nodes)


def test_the_last_one_lets_all_go_on() -> None:
    first, second = member("first"), member("second")
    assert run_permit($plugin(), first) == WAIT
    assert run_permit($plugin(), first, second) == Allow()


def test_a_pod_that_replaces_one_joins_those_that_run() -> None:
    old = make_pod("old", labels=GROUP, node="a", phase="Running")
    nodes = make_nodes(make_node("a"), pods=[old])
    new = make_binding(make_pod("new", labels=GROUP), "a", nodes=nodes)
    assert run_permit($plugin(), new) == Allow()


def test_a_pod_without_a_group_need_not_wait() -> None:
    alone = make_binding(make_pod(), "a")
    assert run_permit($plugin(), alone) == Allow()
'''
