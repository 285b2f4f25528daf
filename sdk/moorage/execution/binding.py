"""Asks one bind plugin about one bind, and checks its answer.

The binder calls this for each plugin of a profile, `moorage.testing` for the one under test.
"""

import math
from collections.abc import Callable

from moorage.execution.cycle import Supervisor
from moorage.execution.enabled import EnabledPlugin
from moorage.plugin.errors import WrongAnswerError, WrongTypeError
from moorage.plugin.hooks import BindPlugin
from moorage.plugin.values import Allow, Binding, Permission, Refusal, Wait


def permit_key_of(enabled: EnabledPlugin, binding: Binding, supervisor: Supervisor) -> str:
    """Return the key of the binds that this one may have to wait for.

    Raises the same as `ask_before_bind`.
    """
    plugin = _bind_plugin(enabled)
    return supervisor.call(enabled, "permit_key", _permit_key, plugin, binding)


async def ask_to_permit(
    enabled: EnabledPlugin, binding: Binding, key: str, supervisor: Supervisor
) -> Permission:
    """Return whether the bind may go on, has to wait for others with its key, or is refused.

    Raises the same as `ask_before_bind`.
    """
    plugin = _bind_plugin(enabled)
    return await supervisor.wait_for(enabled, "permit", _permit, plugin, binding, key)


async def ask_before_bind(
    enabled: EnabledPlugin, binding: Binding, supervisor: Supervisor
) -> Refusal | None:
    """Return why a plugin refuses the bind, or None if it does not.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly, took too long, or is not called
            now because of overruns.
        TimeoutError: The supervisor's deadline passed.
    """
    plugin = _bind_plugin(enabled)
    return await supervisor.wait_for(enabled, "pre_bind", _pre_bind, plugin, binding)


async def call_after_bind(enabled: EnabledPlugin, binding: Binding, supervisor: Supervisor) -> None:
    """Call a plugin once the pod is bound. Raises the same as `ask_before_bind`."""
    plugin = _bind_plugin(enabled)
    await supervisor.wait_for(enabled, "post_bind", plugin.post_bind, binding)


def _bind_plugin(enabled: EnabledPlugin) -> BindPlugin:
    assert isinstance(enabled.plugin, BindPlugin)  # noqa: S101 - the registry holds nothing else
    return enabled.plugin


def _permit_key(plugin: BindPlugin, binding: Binding) -> str:
    key: object = plugin.permit_key(binding)
    if not isinstance(key, str):
        raise WrongTypeError(plugin.permit_key, key, "text")
    return key


async def _permit(plugin: BindPlugin, binding: Binding, key: str) -> Permission:
    answer: object = await plugin.permit(binding)
    if isinstance(answer, Refusal):
        return _checked(plugin.permit, answer)
    if isinstance(answer, Wait):
        seconds: object = answer.seconds
        if not isinstance(seconds, int | float):
            raise WrongTypeError(plugin.permit, seconds, "Wait(seconds) with a number")
        if not (math.isfinite(seconds) and seconds >= 0):
            raise WrongAnswerError(plugin.permit, f"returned Wait({seconds:g}), which is no time")
        if not isinstance(answer.awaited, str):
            raise WrongTypeError(plugin.permit, answer.awaited, "text as what is awaited")
        if not key:
            raise WrongAnswerError(plugin.permit, _nobody_can_come(plugin))
        return answer
    if not isinstance(answer, Allow):
        raise WrongTypeError(plugin.permit, answer, "Allow(), Wait(...) or Refusal(...)")
    return answer


def _nobody_can_come(plugin: BindPlugin) -> str:
    cure = "return one for each pod that may wait"
    if type(plugin).permit_key is BindPlugin.permit_key:
        cure = "override permit_key"
    return f'returned Wait, but permit_key is "", so nobody can come: {cure}'


async def _pre_bind(plugin: BindPlugin, binding: Binding) -> Refusal | None:
    answer: object = await plugin.pre_bind(binding)
    if answer is None:
        return None
    if not isinstance(answer, Refusal):
        raise WrongTypeError(plugin.pre_bind, answer, "Refusal or None")
    return _checked(plugin.pre_bind, answer)


def _checked(method: Callable[..., object], refusal: Refusal) -> Refusal:
    if not isinstance(refusal.reason, str):
        raise WrongTypeError(method, refusal.reason, "text as the reason")
    return refusal
