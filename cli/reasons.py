"""Says in one line why a pod is where it is, from the gateway's decision record."""

from typing import Any

import aiohttp

from cli.cluster import PodState

BEST_SCORES = 3
"""How many plugin scores are worth showing."""


async def why(session: aiohttp.ClientSession, admin: str, pod: PodState) -> str:
    """Return the reason for a pod's place, or for its having none."""
    if not pod.node:
        return pod.problem or "not tried yet"
    url = f"{admin}/decisions/{pod.namespace}/{pod.name}"
    async with session.get(url) as response:
        if response.status != 200:
            return "bound before Moorage looked"
        decision = (await response.json())["attempts"][0]
    return _scores(decision, pod.node) or _only_node(decision)


def _scores(decision: dict[str, Any], node: str) -> str:
    top = (decision.get("score") or {}).get("top", ())
    chosen = next((entry for entry in top if entry["node"] == node), None)
    if chosen is None:
        return ""
    ranked = sorted(chosen["plugins"], key=lambda p: -p["normalized"] * p["weight"])
    parts = [
        f"{p['plugin']} {p['normalized']:.0f}" + (f" x{p['weight']}" if p["weight"] > 1 else "")
        for p in ranked[:BEST_SCORES]
    ]
    return f"score {chosen['total']:.1f}: " + ", ".join(parts)


def _only_node(decision: dict[str, Any]) -> str:
    plugins = (decision.get("filter") or {}).get("plugins", ())
    rejections = [
        f"{plugin['plugin']} rejected {plugin['rejected']}"
        for plugin in plugins
        if plugin.get("rejected")
    ]
    return "the only feasible node: " + ", ".join(rejections) if rejections else "feasible"
