"""Two gateways on equal clusters, one with memory; to compare what comes of odd plugins."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sandbox.apiserver.resources.paths import parse
from tests.gateway.cycle.cache.caching import (
    NAMES,
    Asked,
    caching,
    decided,
    events,
    fill,
    node,
    noting,
    of_set,
    told,
)
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gateway


@asynccontextmanager
async def both(folder: Path, text: str, *plugins: Any) -> AsyncIterator[tuple[Gateway, Gateway]]:
    """Run a gateway with memory, and one without."""
    async with AsyncExitStack() as stack:
        made = []
        for limit in (32, 0):
            (folder / f"{limit}").mkdir()
            process = await stack.enter_async_context(
                caching(
                    folder / f"{limit}",
                    *noting(Asked()),
                    *plugins,
                    text=text,
                    cache_pods=limit,
                )
            )
            await fill(process)
            made.append(process)
        yield made[0], made[1]


async def outcome(process: Gateway, name: str, **spec: Any) -> Object:
    """Place a pod; return all that came of it, whether or not a half failed."""
    made = of_set(name)
    made["spec"] |= spec
    answers = [await process.call("filter", {"Pod": made, "NodeNames": NAMES})]
    names = (answers[0][1] or {}).get("NodeNames") or []
    if names:
        answers.append(await process.call("prioritize", {"Pod": made, "NodeNames": names}))
    decision = await decided(process, name)
    halves = [decision.get(half, {}) for half in ("filter", "score")]
    return {
        "answers": answers,
        "errors": [decision.get(error) for error in ("error", "scoreError")],
        "top": halves[1].get("top"),
        "plugins": [
            {k: v for k, v in plugin.items() if k not in ("seconds", "note")}
            for half in halves
            for plugin in half.get("plugins", ())
        ],
    }


async def touch(process: Gateway, *names: str, part: str = "", **fields: str) -> None:
    """Change nodes so that they are asked about again."""
    update = process.api.server.cluster.update
    for name in names:
        made = node(name, **fields)
        made["metadata"]["labels"]["touched"] = f"{events(process, 'nodes')}"
        path = parse(f"/api/v1/nodes/{name}{part}")
        await told(process, "nodes", partial(update, path, made))
