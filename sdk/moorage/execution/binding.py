"""Asks one bind plugin about one bind, and checks its answer.

The binder calls this for each plugin of a profile, `moorage.testing` for the one under test.
"""

from moorage.execution.cycle import Supervisor
from moorage.execution.enabled import EnabledPlugin
from moorage.plugin.bind import BindPlugin
from moorage.plugin.binding import Binding, Refusal
from moorage.plugin.errors import WrongTypeError


async def ask_before_bind(
    enabled: EnabledPlugin, binding: Binding, supervisor: Supervisor
) -> Refusal | None:
    """Return why a plugin refuses the bind, or None if it does not.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly, took too long, or is suspended.
        TimeoutError: The supervisor's deadline passed.
    """
    plugin = _bind_plugin(enabled)
    enabled.check_not_suspended("pre_bind")
    refusal = await supervisor.wait_for(enabled, "pre_bind", _pre_bind, plugin, binding)
    enabled.breaker.succeeded()
    return refusal


async def call_after_bind(enabled: EnabledPlugin, binding: Binding, supervisor: Supervisor) -> None:
    """Call a plugin once the pod is bound. Raises the same as `ask_before_bind`."""
    plugin = _bind_plugin(enabled)
    enabled.check_not_suspended("post_bind")
    await supervisor.wait_for(enabled, "post_bind", plugin.post_bind, binding)
    enabled.breaker.succeeded()


def _bind_plugin(enabled: EnabledPlugin) -> BindPlugin:
    assert isinstance(enabled.plugin, BindPlugin)  # noqa: S101 - the registry holds nothing else
    return enabled.plugin


async def _pre_bind(plugin: BindPlugin, binding: Binding) -> Refusal | None:
    answer: object = await plugin.pre_bind(binding)
    if answer is None:
        return None
    if not isinstance(answer, Refusal):
        raise WrongTypeError(plugin.pre_bind, answer, "Refusal or None")
    if not isinstance(answer.reason, str):
        raise WrongTypeError(plugin.pre_bind, answer.reason, "text as the reason")
    return answer
