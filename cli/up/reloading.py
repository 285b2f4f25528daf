"""Takes changed plugin files into use: tries them, then replaces the services that run them.

That files have changed is noticed by looking at them again and again: editors, mounts and
containers differ in the events that they cause, while looks always work and cost nothing for a few
files.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from cli.config.policies import Policy
from cli.shared.failures import described
from cli.shared.gateway.client import Gateway
from cli.shared.gateway.finding import GatewayError
from cli.shared.screen import Screen
from cli.up.checking import Checked, check
from cli.up.processes import Processes, ProcessFailedError
from cli.up.processes.stack import StackOptions
from cli.up.readiness import replicas, wait_for_others
from moorage.errors import MoorageError, causes
from moorage_host.plugins.registry import is_plugin_file

SERVICES = ("filter", "scorer", "binder")
"""What runs plugins, by the first part of the names of the processes."""

LOOK_SECONDS = 0.25
"""Time between two looks. Editors write in steps: a change counts once two looks found the same."""

Marks = Mapping[Path, tuple[int, int, int]]
"""Files with time of change, size and inode."""

Retry = Callable[[], Awaitable[str]]
"""Has pending pods tried again; returns what is shown about that."""


async def reload_changes(
    screen: Screen,
    stack: StackOptions,
    processes: Processes,
    gateway: Gateway,
    retry: Retry,
    *,
    config: Path | None,
    weights: Mapping[Path, int],
    policy: Policy,
) -> None:
    """Take changed plugin files into use, and the policy file that they go with, until cancelled.

    The cluster and kube-scheduler go on. The plugins in use stay until those of the changed files
    have been loaded and started in a process of their own.

    Args:
        screen: Shows what came of a change.
        stack: With which options the services run.
        processes: The services.
        gateway: Sees services come and go.
        retry: Called after each change.
        config: The user's policy file; without one the policy is made of the plugins.
        weights: The weights of score plugins, without a policy file.
        policy: What the files and the policy file meant at the start.
    """
    clock, notes = asyncio.get_running_loop().time, policy.notes
    async for changed in changes([*stack.plugins, *([config] if config else [])]):
        start, files = clock(), ", ".join(sorted({path.name for path in changed}))
        checked = await check(config, stack.plugins, weights)
        problem = checked.problem or await _replace(
            checked, stack, processes, gateway, is_made=config is None
        )
        if problem:
            screen.sentence(problem, style="red")
            screen.sentence(f"{files}: not reloaded, what was there before stays in use")
            continue
        for note in checked.notes:
            if note not in notes:
                screen.sentence(f"Note: {note}", style="yellow")
        notes = checked.notes
        seconds = clock() - start
        screen.sentence(f"reloaded {files} in {seconds:.1f} s{await retry()}", style="green")


async def _replace(
    checked: Checked, stack: StackOptions, processes: Processes, gateway: Gateway, *, is_made: bool
) -> str:
    """Replace the services, and the policy file if it *is_made*; return why that failed."""
    former, problem = frozenset[str](), ""
    try:
        former = await replicas(gateway)
        names = [name for name in processes.names if name.partition("-")[0] in SERVICES]
        async with processes.replacing(names):
            if stack.config and is_made:
                stack.config.write_text(checked.text)
    except* (ProcessFailedError, GatewayError) as errors:
        problem = next(described(e) for e in causes(errors) if isinstance(e, MoorageError))
    return problem or await wait_for_others(gateway, former, checked.revision)


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
