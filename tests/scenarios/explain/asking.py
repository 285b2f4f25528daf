"""Asks `moorage explain`, and compares its first line with what the test knows."""

import re
from collections.abc import Callable, Mapping

from cli.decisions.explain.sources import explained as ask
from cli.shared.gateway.options import GatewayOptions
from gateway.decisions.why import Explanation
from tests.scenarios.world import World
from tools.planes.objects import NAMESPACE

Record = Callable[[str, object], None]
"""pytest's fixture record_property."""

WITHIN = 30.0
"""Seconds in which the first line has to name the cause."""


async def explained(world: World, name: str, node: str = "") -> Explanation:
    options = GatewayOptions(admin=world.services.admin, kubeconfig=world.plane.kubeconfig("admin"))
    return (await ask(f"{NAMESPACE}/{name}", node, options)).found


async def headline(world: World, name: str, node: str = "") -> str:
    return (await explained(world, name, node)).headline.removeprefix(f"{NAMESPACE}/")


async def until_headline(world: World, name: str, expected: str) -> None:
    """Wait until the first line about a pod matches a regular expression."""
    found = ""

    async def there() -> bool:
        nonlocal found
        found = await headline(world, name)
        return re.search(expected, found) is not None

    try:
        await world.until(there, WITHIN)
    except TimeoutError:
        raise AssertionError(f"{expected!r} does not match {found!r}") from None


async def named(world: World, expected: Mapping[str, str]) -> int:
    """Check that the first line about each pod names its cause; return how many there were.

    Args:
        world: The cluster.
        expected: For each pod a regular expression that the first line matches.
    """
    wrong = []
    for name, pattern in expected.items():
        try:
            await until_headline(world, name, pattern)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)
    return len(expected)
