"""Checks policy files and lists every mistake of each; called by `moorage config validate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.config.policies import load_registries, resolve_file, unused_plugins
from moorage.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out about one file; each line begins with `FILE:LINE: `.

    Attributes:
        file: The file.
        mistakes: Why it cannot be used, by line.
        notes: What has no effect, if it can be used.
        profiles: The schedulerNames of its profiles, if it can be used.
    """

    file: Path
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()


def validate_files(files: Sequence[Path], plugins: Sequence[Path]) -> list[Finding]:
    """Check files.

    Args:
        files: The files.
        plugins: Files and folders with plugins beside the built-in and installed ones.

    Raises:
        PluginLoadError: A plugin cannot be loaded.
    """
    registries = load_registries(plugins)
    findings = []
    for file in files:
        try:
            policy = resolve_file(file, registries)
        except ConfigurationError as error:
            findings.append(Finding(file=file, mistakes=tuple(str(error).splitlines())))
            continue
        notes = [_as_note(warning, file) for warning in policy.warnings]
        notes += [f"{file}:1: note: plugin {text}" for text in unused_plugins(policy, registries)]
        names = tuple(policy.profile_names)
        findings.append(Finding(file=file, notes=tuple(notes), profiles=names))
    return findings


def summary(findings: Sequence[Finding]) -> str:
    """Return how many mistakes there are, and where."""
    count = sum(len(finding.mistakes) for finding in findings)
    wrong = [finding.file for finding in findings if finding.mistakes]
    where = f"{wrong[0]}" if len(findings) == 1 else f"{len(wrong)} of {len(findings)} files"
    return f"{count} mistake{'s' * (count != 1)} in {where}"


def _as_note(warning: str, file: Path) -> str:
    """Mark a warning, which begins with its file and line."""
    line, _, text = warning.removeprefix(f"{file}:").partition(": ")
    return f"{file}:{line}: note: {text}"
