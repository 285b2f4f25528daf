"""The texts of a bind plugin and its test; used by `cli.skeleton.texts`."""

BIND = '''\
"""The bind plugin $plugin."""

import logging
from typing import Annotated

from moorage import $imports

HELD = "pod is on hold"  # constant: Kubernetes counts reasons

_log = logging.getLogger(__name__)


class $plugin(BindPlugin):
    """Leaves pods pending for as long as they carry a label."""

    class Args(Arguments):
        """The key of the label; its value does not matter."""

        label: Annotated[str, Meta(min_length=1)] = "example.com/hold"

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Return why the pod may not be bound now, or None if it may."""
        if self.args.label in binding.pod.labels:
            return Refusal(HELD)
        return None

    async def post_bind(self, binding: Binding) -> None:
        """Log that the pod is bound."""
        _log.info("%s is bound to %s", binding, binding.node)
'''

TEST_BIND = '''\
"""The bind plugin $plugin."""

import asyncio

import pytest
from moorage import Refusal
from moorage.testing import make_binding, make_pod, run_pre_bind

from $module import HELD, $plugin


def test_a_pod_on_hold_is_not_bound() -> None:
    pod = make_pod(labels={"example.com/hold": ""})
    refusal = run_pre_bind($plugin(), make_binding(pod, "a"))
    assert refusal == Refusal(HELD)


def test_other_pods_are_bound() -> None:
    binding = make_binding(make_pod(), "a")
    assert run_pre_bind($plugin(), binding) is None


def test_the_label_is_an_argument() -> None:
    pod = make_pod(labels={"example.com/wait": ""})
    args = $plugin.Args(label="example.com/wait")
    refusal = run_pre_bind($plugin(args), make_binding(pod, "a"))
    assert refusal == Refusal(HELD)


def test_it_tells_what_was_bound(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    binding = make_binding(make_pod("web"), "a")
    asyncio.run($plugin().post_bind(binding))
    assert caplog.messages == ["pod default/web is bound to a"]
'''
