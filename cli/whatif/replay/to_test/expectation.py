"""What should have been decided, and which plugin is asked about that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cli.config.policies import Registries
from cli.whatif.replay.to_test.situation import Situation
from moorage.errors import ConfigurationError
from moorage_host.plugins.registry import Registered
from moorage_host.policy import Kind
from moorage_host.policy.effective import EffectivePlugin, decode_effective

Wish = Literal["feasible", "rejected", "node"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One sentence: this plugin should have decided that about this node.

    Attributes:
        wish: The node should have been feasible, rejected, or the best.
        node: The node.
        kind: The kind of the plugin.
        plugin: The plugin.
        arguments: Its arguments in the policy.
        recorded: What it decided: why it rejected the node, "" if it let it pass.
        rival: The node that it preferred, for the wish "node".
    """

    wish: Wish
    node: str
    kind: Kind
    plugin: Registered
    arguments: Mapping[str, Any]
    recorded: str = ""
    rival: str = ""


def expectation_of(
    situation: Situation, wish: Wish, node: str, plugin: str, registries: Registries
) -> Expectation:
    """Return what is expected of which plugin; without a name, of the one that decided.

    Raises:
        ConfigurationError: It was decided so already, or the plugin must be named or is not here.
    """
    row, outcome = situation.row_of(node), situation.outcome
    reason = outcome.reason_of(row) if row in outcome.rows else None
    if reason is None and not len(outcome.feasible):
        raise ConfigurationError("no node was feasible, and no filter plugin was asked")
    if wish == "rejected":
        return _rejected(situation, node, plugin, registries)
    if reason is not None:  # it cannot be the best before it is feasible
        name = plugin or reason.plugin
        text = reason.text if name == reason.plugin else ""
        return _with(situation, "filter", name, registries, wish="feasible", node=node, text=text)
    if wish == "feasible":
        raise ConfigurationError(f"{node} was feasible; did you mean --expect-node {node}?")
    return _best(situation, row, node, plugin, registries)


def _rejected(situation: Situation, node: str, plugin: str, registries: Registries) -> Expectation:
    outcome = situation.outcome
    row = situation.row_of(node)
    reason = outcome.reason_of(row) if row in outcome.rows else None
    if reason is not None and plugin in ("", reason.plugin):
        raise ConfigurationError(f"{node} was rejected already, by {reason}")
    if not plugin:
        names = ", ".join(_enabled(situation, "filter"))
        raise ConfigurationError(f"which plugin should have rejected {node}? --plugin: {names}")
    return _with(situation, "filter", plugin, registries, wish="rejected", node=node)


def _best(
    situation: Situation, row: int, node: str, plugin: str, registries: Registries
) -> Expectation:
    outcome = situation.outcome
    total = outcome.total_of(row)
    if total is None:
        raise ConfigurationError(f"{node} was not scored, as no other node was feasible")
    rivals = [int(each) for each in outcome.best if int(each) != row]
    if not rivals or total >= outcome.totals.max():
        others = f", together with {len(rivals)} more" if rivals else ""
        raise ConfigurationError(f"{node} was the best already{others}")
    scored = list(outcome.scored)
    at, rival = scored.index(row), scored.index(rivals[0])
    gains = {name: float(raw[rival] - raw[at]) for name, raw in outcome.raw.items()}
    if not plugin:
        blamed = [name for name, gain in gains.items() if gain > 0]
        if len(blamed) != 1:
            names = ", ".join(
                f"{n} ({g:+g} for {situation.names[rivals[0]]})" for n, g in gains.items()
            )
            raise ConfigurationError(
                f"which plugin should have preferred {node}? --plugin: {names}"
            )
        plugin = blamed[0]
    found = _with(situation, "score", plugin, registries, wish="node", node=node)
    raw = outcome.raw.get(plugin)
    best = rivals[0] if raw is None else int(scored[int(raw.argmax())])
    best = best if best != row else rivals[0]
    return Expectation(
        wish="node",
        node=node,
        kind="score",
        plugin=found.plugin,
        arguments=found.arguments,
        rival=situation.names[best],
    )


def _with(
    situation: Situation,
    kind: Kind,
    name: str,
    registries: Registries,
    *,
    wish: Wish,
    node: str,
    text: str = "",
) -> Expectation:
    enabled = _enabled(situation, kind)
    if name not in enabled:
        known = ", ".join(enabled) or "none"
        raise ConfigurationError(
            f"{name} is no {kind} plugin of profile {situation.recorded.cycle.profile}; those "
            f"were enabled: {known}"
        )
    registered = registries[kind].get(name)
    if registered is None:
        raise ConfigurationError(f"plugin {name} is not here: give its file with --plugin-path")
    return Expectation(
        wish=wish,
        node=node,
        kind=kind,
        plugin=registered,
        arguments=enabled[name].args,
        recorded=text,
    )


def _enabled(situation: Situation, kind: Kind) -> Mapping[str, EffectivePlugin]:
    policy = situation.recorded.policy
    content = policy.filter.json if kind == "filter" else policy.score.json
    profile = decode_effective(content).profile(situation.recorded.cycle.profile)
    return {plugin.name: plugin for plugin in profile.plugins} if profile else {}
