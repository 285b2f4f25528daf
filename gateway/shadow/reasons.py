"""Which score plugin decides between the best node of a profile and that of its shadow, and why."""

from gateway.shadow.outcomes import Outcome

Opinion = tuple[int, float]
"""Weight and normalised score."""


def score_reason(
    live: Outcome, shadow: Outcome, before: int, after: int, names: list[str]
) -> tuple[str, str, str]:
    """Return the plugin, why without nodes, and the same with nodes and numbers.

    Of the plugins that changed in weight or scores, it is the one whose part in the distance
    between the two nodes' totals changed most.

    Args:
        live: What the profile decided.
        shadow: What its shadow did.
        before: The position of the profile's best node.
        after: That of the shadow's.
        names: Their names.
    """
    opinions = [(each.opinions(before), each.opinions(after)) for each in (live, shadow)]
    leads = [_leads(*each) for each in opinions]
    plugins = dict.fromkeys((*leads[1], *leads[0]))
    live_and_shadow = list(zip(*opinions, strict=True))
    changed = [
        name
        for name in plugins
        if any(was.get(name) != now.get(name) for was, now in live_and_shadow)
    ]
    plugins = dict.fromkeys(changed) or plugins
    if not plugins:
        return "", "other scores", "the scores differ"
    plugin = max(plugins, key=lambda name: leads[1].get(name, 0.0) - leads[0].get(name, 0.0))
    was, now = (tuple(part.get(plugin) for part in each) for each in opinions)
    reason = _change(was[0] or was[1], now[0] or now[1])
    shown = (_scores(was, names), _scores(now, names))
    text = f"{plugin} {reason}: {_joined(*shown)}"
    return plugin, reason, text


def _leads(before: dict[str, Opinion], after: dict[str, Opinion]) -> dict[str, float]:
    """Return what each plugin adds to the lead of the second node, of 100 in all."""
    weights = sum(weight for weight, _ in (after or before).values())
    return {
        name: weight * (score - before.get(name, (weight, 0.0))[1]) / max(weights, 1)
        for name, (weight, score) in after.items()
    }


def _change(was: Opinion | None, now: Opinion | None) -> str:
    """Return how a plugin's part changed."""
    if was is None or now is None:
        return "scores only in the shadow" if was is None else "does not score in the shadow"
    if was[0] != now[0]:
        return f"has weight {now[0]} instead of {was[0]}"
    return "scores otherwise"


def _scores(pair: tuple[Opinion | None, ...], names: list[str]) -> str:
    """Return the scores of both nodes in words."""
    found = [
        f"{name} {opinion[1]:.4g}" for name, opinion in zip(names, pair, strict=True) if opinion
    ]
    return ", ".join(found)


def _joined(was: str, now: str) -> str:
    if was == now or not was or not now:
        return now or was
    return f"{now}; live {was}"
