"""Asks `moorage explain` and the gateway alone, and compares with what the test knows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiohttp

from cli.decisions.explain import explained as ask
from cli.shared.gateway.options import GatewayOptions
from gateway.decisions.explanation import Explanation
from tests.scenarios.world import World
from tools.planes.objects import NAMESPACE

WITHIN = 30.0
"""Seconds in which the first line has to name the cause."""


@dataclass(frozen=True, slots=True)
class Row:
    """A situation.

    Attributes:
        event: What has happened.
        pod: The pod that is asked about.
        first: What the first line matches, behind the pod's name.
        next: What one of the lines with Next matches; "" if there is none.
        alone: Whether the gateway says the same by itself, as the inspector and `moorage up` show.
    """

    event: str
    pod: str
    first: str
    next: str = ""
    alone: bool = True


async def explained(world: World, name: str, node: str = "") -> Explanation:
    options = GatewayOptions(admin=world.services.admin, kubeconfig=world.plane.kubeconfig("admin"))
    return await ask(f"{NAMESPACE}/{name}", node, options)


async def headline(world: World, name: str, node: str = "") -> str:
    return (await explained(world, name, node)).headline.removeprefix(f"{NAMESPACE}/")


async def until_row(world: World, row: Row) -> None:
    """Wait until all that is said about a pod is as a row has it."""
    said = ""

    async def there() -> bool:
        nonlocal said
        found = await explained(world, row.pod)
        lines = [found.headline, *found.next]
        if row.alone:
            lines += await said_by_gateway(world, row.pod)
        said = "\n".join(lines)
        alone = lines[1 + len(found.next) :]
        return (
            re.search(row.first, found.headline) is not None
            and (any(re.search(row.next, each) for each in found.next) or not row.next)
            and bool(found.next) >= bool(row.next)
            and all(re.search(row.first, each) for each in alone)
        )

    try:
        await world.until(there, WITHIN)
    except TimeoutError:
        raise AssertionError(f"{row} does not match:\n{said}") from None


async def said_by_gateway(world: World, name: str) -> list[str]:
    """Return the first line of what the gateway itself says about a pod, by itself and in lists."""
    url, pod = f"{world.services.admin}/decisions", f"{NAMESPACE}/{name}"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/{pod}") as answer:
            found = await answer.json()
        async with session.get(f"{url}/pending") as answer:
            listed = (each for each in (await answer.json())["items"] if each["pod"] == pod)
    return [
        f"{each.get('pod')} {each.get('place')}: {each.get('reason')}" for each in (found, *listed)
    ]


async def answered(world: World, rows: Sequence[Row]) -> None:
    """Check what is said about each situation."""
    wrong = []
    for row in rows:
        try:
            await until_row(world, row)
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n\n".join(wrong)


async def named(world: World, expected: Mapping[str, str]) -> None:
    """Check that the first line about each pod names its cause.

    Args:
        world: The cluster.
        expected: For each pod a regular expression that the first line matches.
    """
    rows = [Row("", name, pattern, next="|.*") for name, pattern in expected.items()]
    await answered(world, rows)
