"""Records what a plugin asks for outside of a cycle."""

from moorage.plugin.filter import FilterPlugin


def record_retries(plugin: FilterPlugin) -> list[str]:
    """Return a list that gets the reason of each call of `retry_rejected` from here on.

    Such as `retries = record_retries(plugin)`, and then `assert retries == ["it is cheaper now"]`.
    """
    reasons: list[str] = []
    plugin.report_retries(lambda _, reason: reasons.append(reason))
    return reasons
