"""Makes a test of a recorded cycle, for `moorage journal to-test`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.config.policies import load_registries
from cli.whatif.replay.to_test.expectation import Wish, expectation_of
from cli.whatif.replay.to_test.reducing import Reducer
from cli.whatif.replay.to_test.situation import find_situation
from cli.whatif.replay.to_test.writing import sentence, test_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A test: its text, what it is about, and whether it fails with the plugin of this machine."""

    text: str
    sentence: str
    fails: bool


def make_test(
    journal: Path,
    pod: str,
    attempt: int | None,
    wish: tuple[Wish, str],
    plugin: str,
    paths: Sequence[Path],
    folder: Path,
) -> Made:
    """Return the test of what should have been decided about a node, to be put into *folder*.

    Raises:
        MoorageError: There is no such cycle, it was decided so, or the plugin is not here.
    """
    registries = load_registries(paths)
    what, node = wish
    situation = asyncio.run(find_situation(journal, pod, attempt, scored=what == "node"))
    expectation = expectation_of(situation, what, node, plugin, registries)
    cluster, fails = Reducer(situation, expectation).reduce()
    text = test_file(situation, expectation, cluster, folder)
    return Made(text=text, sentence=sentence(expectation), fails=fails)
