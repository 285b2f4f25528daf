"""Replicas with different versions of a plugin, as during a rollout."""

from pathlib import Path

from cli.up.processes import free_ports
from moorage import ScorePlugin
from moorage_host.plugins.registry import load_registry
from tests.gateway.cycle.cache.caching import (
    NAMES,
    Asked,
    answered,
    caching,
    fill,
    noting,
    of_set,
    place_all,
    policy,
    replicas_are,
)
from tests.gateway.cycle.cache.odd import touch
from tests.gateway.sharing import place
from tools.inprocess.gateway import scorer_service

RANKS = """
from moorage import Normalization, Scope, ScorePlugin

class Ranks(ScorePlugin):
    '''Ranks nodes by name.'''

    depends_on = Scope.{scope}
    normalization = Normalization.MAXIMUM

    def score(self, pod, nodes):
        return [{scores}[node.name] for node in nodes]
"""
RISING = {"n1": 1.0, "n2": 2.0, "n3": 4.0}
FALLING = {"n1": 400.0, "n2": 200.0, "n3": 100.0}
VALID = ({"n1": 25, "n2": 50, "n3": 100}, {"n1": 100, "n2": 50, "n3": 25})


def version(folder: Path, scores: dict[str, float], scope: str = "NODE") -> type[ScorePlugin]:
    """Write a version of the plugin to a folder of its own, and load it."""
    folder.mkdir()
    file = folder / "ranks.py"
    file.write_text(RANKS.format(scope=scope, scores=scores))
    registered = load_registry(ScorePlugin, (), [file]).get("Ranks")
    assert registered is not None
    assert issubclass(registered.kind, ScorePlugin)
    return registered.kind


async def test_no_order_is_a_mixture_of_two_versions(tmp_path: Path) -> None:
    one = version(tmp_path / "one", RISING)
    other = version(tmp_path / "other", FALLING)
    fits, _ = noting(Asked())
    (port,) = free_ports(1)
    text, also = policy(scores="{name: Ranks}"), {"scorer": f"127.0.0.1:{port}"}
    async with caching(tmp_path, fits, one, text=text, also=also) as process:
        await fill(process)
        async with scorer_service(other, port=port):
            await replicas_are(process, "scorer", 2)
            for attempt in range(12):
                await touch(process, "n1")
                answer = await place(process, of_set(f"p{attempt}"), NAMES)
                assert answer["scores"] in VALID


async def test_what_one_replica_declares_does_not_hold_for_another(tmp_path: Path) -> None:
    careful = version(tmp_path / "one", RISING, "ANYTHING")
    careless = version(tmp_path / "other", RISING, "NODE")
    fits, _ = noting(Asked())
    (port,) = free_ports(1)
    text, also = policy(scores="{name: Ranks}"), {"scorer": f"127.0.0.1:{port}"}
    async with caching(tmp_path, fits, careful, text=text, also=also) as process:
        await fill(process)
        async with scorer_service(careless, port=port):
            await replicas_are(process, "scorer", 2)
            await place_all(process, "first", "second")
            _, before = answered(process)
            await place_all(process, "third", "fourth", "fifth")
            _, after = answered(process)
            assert after - before == 3
        await replicas_are(process, "scorer", 1)


async def test_a_declaration_goes_with_the_replica_that_made_it(tmp_path: Path) -> None:
    careless = version(tmp_path / "one", RISING, "NODE")
    careful = version(tmp_path / "other", RISING, "ANYTHING")
    fits, _ = noting(Asked())
    (port,) = free_ports(1)
    text, also = policy(scores="{name: Ranks}"), {"scorer": f"127.0.0.1:{port}"}
    async with caching(tmp_path, fits, careless, text=text, also=also) as process:
        await fill(process)
        async with scorer_service(careful, port=port):
            await replicas_are(process, "scorer", 2)
        await replicas_are(process, "scorer", 1)
        await place_all(process, "first", "second")
        _, before = answered(process)
        await place_all(process, "third", "fourth", "fifth")
        _, after = answered(process)
        assert after == before
