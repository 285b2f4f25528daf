"""Takes changed plugin files into use: tries them, then replaces the services that run them.

That files have changed is noticed by looking at them again and again: editors, mounts and
containers differ in the events that they cause, while looks always work and cost nothing for a few
files.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import msgspec

from cli.config.policies import KINDS, NO_WEIGHTS, ChosenPolicy, choose_policy
from cli.shared.failures import described
from cli.shared.files import reason_of, write_files
from cli.shared.gateway.client import Gateway
from cli.shared.screen import Screen
from cli.up.processes import Processes, fork
from cli.up.processes.stack import StackOptions
from cli.up.readiness import replicas, wait_for_others
from moorage.errors import MoorageError, causes
from moorage_host.plugins.host import PluginHost
from moorage_host.plugins.registry import is_plugin_file, load_registry
from moorage_host.policy import Kind, read

SERVICES = ("filter", "scorer", "binder")
"""What runs plugins, by the first part of the names of the processes."""

LOOK_SECONDS = 0.25
"""Time between two looks. Editors write in steps: a change counts once two looks found the same."""

CHECK_SECONDS = 60.0
"""How long plugins may take to be loaded and started; imports take seconds on a busy machine."""

Marks = Mapping[Path, tuple[int, int, int]]
"""Files with time of change, size and inode."""

Retry = Callable[[], Awaitable[str]]
"""Has pending pods tried again; returns what is shown about that."""


# ---- files are tried in a process of their own: one that never ends, or ends it, does no harm


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        problem: Why the files cannot be used; empty if they can.
        text: The policy document.
        revision: That of the policy.
        notes: What has no effect.
    """

    problem: str = ""
    text: str = ""
    revision: str = ""
    notes: tuple[str, ...] = ()


async def check(
    config: Path | None, plugins: Sequence[Path], weights: Mapping[Path, int] = NO_WEIGHTS
) -> Checked:
    """Try *plugins* with the policy in *config*, or with one made of them and their weights."""
    heavy = {str(path): weight for path, weight in weights.items()}
    asked = [str(config or ""), msgspec.json.encode(heavy).decode(), *map(str, plugins)]
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        process = await fork(__name__, asked, stdout=stdout.fileno(), stderr=stderr.fileno())
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await process.wait()
        except TimeoutError:
            return Checked(problem=f"the plugins are not loaded after {CHECK_SECONDS:g} s")
        finally:
            process.kill()
            await process.wait()
        answer, errors = (_content(file) for file in (stdout, stderr))
    try:
        return msgspec.json.decode(answer, type=Checked)
    except msgspec.DecodeError:
        last = (errors.decode(errors="replace").strip() or "it wrote nothing").splitlines()[-1]
        return Checked(problem=f"loading the plugins ended the process: {last}")


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def main() -> None:
    """Answer on stdout; the arguments are the policy file, weights by path, and the plugins."""
    config, heavy, *plugins = sys.argv[1:]
    weights = {Path(path): weight for path, weight in msgspec.json.decode(heavy).items()}
    with redirect_stdout(sys.stderr):  # what plugins print is no answer
        checked = asyncio.run(
            _checked(Path(config) if config else None, [*map(Path, plugins)], weights)
        )
    sys.stdout.buffer.write(msgspec.json.encode(checked))


async def _checked(
    config: Path | None, plugins: Sequence[Path], weights: Mapping[Path, int]
) -> Checked:
    try:
        text = read(config) if config else ""
        policy = choose_policy(config, plugins, weights)
        for kind in KINDS:
            await _start_and_stop(kind, policy, plugins)
    except MoorageError as error:
        return Checked(problem=described(error))
    revision = policy.resolved.revision
    return Checked(text=text or policy.text, revision=revision, notes=policy.notes)


async def _start_and_stop(kind: Kind, policy: ChosenPolicy, plugins: Sequence[Path]) -> None:
    host = PluginHost(load_registry(*KINDS[kind], plugins))
    effective = policy.resolved.policies[kind]
    try:
        await host.use(effective.revision, policy.resolved.for_kind(kind))
    finally:
        await host.close()


# ---- changes


async def reload_changes(
    screen: Screen,
    stack: StackOptions,
    processes: Processes,
    gateway: Gateway,
    retry: Retry,
    *,
    config: Path | None,
    weights: Mapping[Path, int],
    policy: ChosenPolicy,
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
        try:
            checked = await check(config, stack.plugins, weights)
        except OSError as error:  # a full disk has no room for what the trial writes
            checked = Checked(problem=f"the plugins cannot be tried: {reason_of(error)}")
        former, problem = frozenset[str](), checked.problem
        came = "not reloaded; the previous version stays in use"
        if not problem and changed != [config]:  # the gateway notices a policy file by itself
            made = "" if config else checked.text
            former, problem = await _replace(made, stack, processes, gateway)
        if not problem:
            came = "loaded, but not in use; the previous version is gone"
            problem = await wait_for_others(gateway, former, checked.revision)
        if problem:
            screen.sentence(problem, style="red")
            screen.sentence(f"{files}: {came}")
            continue
        for note in checked.notes:
            if note not in notes:
                screen.sentence(f"Note: {note}", style="yellow")
        notes = checked.notes
        seconds = clock() - start
        screen.sentence(f"reloaded {files} in {seconds:.1f} s{await retry()}", style="green")


async def _replace(
    made: str, stack: StackOptions, processes: Processes, gateway: Gateway
) -> tuple[frozenset[str], str]:
    """Replace the services, and the policy by one that is *made* of the plugins, "" for none.

    Returns:
        The former replicas, and why they stay in use; "" if they do not.
    """
    former, problem = frozenset[str](), ""
    try:
        former = await replicas(gateway)
        names = [name for name in processes.names if name.partition("-")[0] in SERVICES]
        async with processes.replacing(names):
            if stack.config and made:
                whole = stack.config.with_suffix(".new")
                write_files({whole: made})
                whole.replace(stack.config)
    except* MoorageError as errors:
        problem = next(described(e) for e in causes(errors) if isinstance(e, MoorageError))
    return former, problem


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


if __name__ == "__main__":
    main()
