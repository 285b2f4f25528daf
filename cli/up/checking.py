"""Tries plugin files in a process of their own, before any service gets them.

The process loads them, resolves the policy, and starts and stops the plugins that it enables. A
file that never ends, or ends the process, does no harm.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import msgspec

from cli.config.policies import KINDS, NO_WEIGHTS, Policy, choose_policy
from cli.shared.failures import described
from cli.up.processes import fork
from moorage.errors import MoorageError
from moorage_host.plugins.host import PluginHost
from moorage_host.plugins.registry import load_registry
from moorage_host.policy import Kind, read

CHECK_SECONDS = 60.0
"""How long it may take; imports take seconds on a busy machine."""


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
        for kind in policy.kinds:
            await _start_and_stop(kind, policy, plugins)
    except MoorageError as error:
        return Checked(problem=described(error))
    revision = policy.resolved.revision
    return Checked(text=text or policy.text, revision=revision, notes=policy.notes)


async def _start_and_stop(kind: Kind, policy: Policy, plugins: Sequence[Path]) -> None:
    host = PluginHost(load_registry(*KINDS[kind], plugins))
    effective = policy.resolved.policies[kind]
    try:
        await host.use(effective.revision, policy.resolved.for_kind(kind))
    finally:
        await host.close()


if __name__ == "__main__":
    main()
