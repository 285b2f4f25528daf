"""Takes changed plugin files into use: tries them, then replaces the services that run them.

That files have changed is noticed by looking at them again and again: editors, mounts and
containers differ in the events that they cause, while looks always work and cost nothing for a few
files.
"""

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path

from cli.config.policies import Policy
from cli.shared.failures import described
from cli.shared.gateway.client import Gateway
from cli.shared.screen import Screen
from cli.up.checking import Checked, check
from cli.up.processes import Processes, ProcessFailedError
from cli.up.processes.stack import StackOptions
from cli.up.readiness import counts, wait_for_counts
from moorage.errors import MoorageError, causes
from moorage_host.plugins.registry import is_plugin_file
from moorage_host.policy import Kind

SERVICES = {"filter": "filter", "score": "scorer", "bind": "binder"}
"""The service that runs plugins of a kind, by the first part of the names of its processes."""

LOOK_SECONDS = 0.25
"""Time between two looks. Editors write in steps: a change counts once two looks found the same."""

Marks = Mapping[Path, tuple[int, int, int]]
"""Files with time of change, size and inode."""

Retry = Callable[[], Awaitable[str]]
"""Has pending pods tried again; returns what is shown about that."""


class Reloader:
    """Follows the plugin files of `moorage up`, and the policy file that they go with.

    The cluster and kube-scheduler go on. The plugins in use stay until those of the changed files
    have been loaded and started in a process of their own, and loaded by every new service process.
    """

    def __init__(
        self,
        screen: Screen,
        stack: StackOptions,
        processes: Processes,
        gateway: Gateway,
        *,
        config: Path | None,
        weights: Mapping[Path, int],
        policy: Policy,
    ) -> None:
        """Follow the plugin files of *stack*.

        Args:
            screen: Shows what came of a change.
            stack: With which options the services run.
            processes: The services.
            gateway: Sees services come and go.
            config: The user's policy file; without one the policy is made of the plugins.
            weights: The weights of score plugins, without a policy file.
            policy: What the files and the policy file meant at the start.
        """
        self._screen = screen
        self._stack = stack
        self._processes = processes
        self._gateway = gateway
        self._config = config
        self._weights = weights
        self._kinds, self._notes = frozenset(policy.kinds), policy.notes
        self._policy = stack.config.read_text() if stack.config else ""
        self._policy_changes = 0
        self._pending: set[str] = set()

    async def run(self, retry: Retry) -> None:
        """Take changes into use, until cancelled; call *retry* after each."""
        self._policy_changes = (await counts(self._gateway))["policy"]
        policy = [self._config] if self._config else []
        async for changed in changes([*self._stack.plugins, *policy]):
            # A plugin file that was refused before may suit the policy file that changed now.
            self._pending |= {path.name for path in changed if path not in policy}
            await self._reload({path.name for path in changed} | self._pending, retry)

    async def _reload(self, names: Collection[str], retry: Retry) -> None:
        clock = asyncio.get_running_loop().time
        start, files = clock(), ", ".join(sorted(names))
        checked = await check(self._config, self._stack.plugins, self._weights)
        if problem := checked.problem or await self._replace(checked):
            self._screen.sentence(problem, style="red")
            self._screen.sentence(f"{files}: not reloaded, what was there before stays in use")
            return
        self._pending.clear()
        for note in checked.notes:
            if note not in self._notes:
                self._screen.sentence(f"Note: {note}", style="yellow")
        self._notes = checked.notes
        seconds = clock() - start
        self._screen.sentence(f"reloaded {files} in {seconds:.1f} s{await retry()}", style="green")

    async def _replace(self, checked: Checked) -> str:
        """Replace the services that have plugins of changed files; return why that failed."""
        kinds = self._kinds | set(checked.kinds) if self._pending else ()
        names = {kind: self._names(kind) for kind in kinds}
        goal = await counts(self._gateway)
        goal["policy"] = self._policy_changes + (checked.text != self._policy)
        goal += Counter({kind: len(each) for kind, each in names.items() if kind != "bind"})
        problem = ""
        try:
            replaced = [n for each in names.values() for n in each]
            if replaced:  # replicas of shadows too, for which nobody waits
                replaced += [n for n in self._processes.names if n.startswith("shadow-")]
            async with self._processes.replacing(replaced):
                if not self._config and self._stack.config:
                    self._stack.config.write_text(checked.text)
        except* ProcessFailedError as errors:
            problem = next(described(e) for e in causes(errors) if isinstance(e, MoorageError))
        if problem:
            return problem
        self._kinds, self._policy = frozenset(checked.kinds), checked.text
        problem = await wait_for_counts(self._gateway, goal)
        self._policy_changes = (await counts(self._gateway))["policy"]
        return problem

    def _names(self, kind: Kind) -> Sequence[str]:
        return [n for n in self._processes.names if n.partition("-")[0] == SERVICES[kind]]


async def changes(paths: Sequence[Path]) -> AsyncIterator[list[Path]]:
    """Yield the files that changed, appeared or are gone, for ever.

    Args:
        paths: Python files, other files, and folders, of which the Python files count.
    """
    known = before = _marks(paths)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = _marks(paths)
        if now == before != known:
            changed = [
                path for path in known.keys() | now.keys() if known.get(path) != now.get(path)
            ]
            known = now
            yield sorted(changed)
        before = now


def _marks(paths: Sequence[Path]) -> Marks:
    found = {}
    for path in paths:
        for file in _files(path):
            try:
                stat = file.stat()
            except OSError:  # between two steps of an editor
                continue
            found[file] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return found


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from filter(is_plugin_file, path.glob("*.py"))
    else:
        yield path
