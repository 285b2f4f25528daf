"""Translates the Policy of a kube-scheduler before 1.23. Called by `moorage convert-policy`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cli.legacy.beside import Available, moorage_configuration
from cli.legacy.document import read_policy
from cli.legacy.plan import Object, make_plan
from cli.legacy.upstream import kube_scheduler_configuration
from moorage.errors import ConfigurationError

SCHEDULER_FILE = "kube-scheduler-config.yaml"
MOORAGE_FILE = "policy.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What a Policy became.

    Attributes:
        documents: The texts by the names of their files.
        notes: What was changed or dropped and why, in the order of the Policy's lines.
    """

    documents: dict[str, str]
    notes: Sequence[str]


def convert(file: Path, available: Available, scheduler_name: str, gateway: str) -> Conversion:
    """Translate a Policy.

    Args:
        file: The Policy.
        available: The plugins that Moorage has.
        scheduler_name: The name of the profile in both documents.
        gateway: Where Moorage's gateway is, for kube-scheduler.

    Raises:
        ConfigurationError: The Policy is wrong; the message names the line.
    """
    policy, tree = read_policy(file)
    plan = make_plan(policy)
    documents: dict[str, Object] = {
        SCHEDULER_FILE: kube_scheduler_configuration(plan, policy, scheduler_name, gateway),
        MOORAGE_FILE: moorage_configuration(plan, available, scheduler_name),
    }
    texts = {
        name: yaml.dump(each, Dumper=_Dumper, sort_keys=False) for name, each in documents.items()
    }
    notes = sorted(plan.notes, key=lambda note: tree.line(note.path))
    return Conversion(documents=texts, notes=[f"{tree.where(n.path)}: {n.text}" for n in notes])


def write(conversion: Conversion, folder: Path) -> list[Path]:
    """Write the documents into a folder, which is made if need be; return the files.

    Raises:
        ConfigurationError: A file is there already, or cannot be written.
    """
    files = {folder / name: text for name, text in conversion.documents.items()}
    for file in files:
        if file.exists():
            raise ConfigurationError(f"{file} is there already: choose another --output-dir")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write into {folder}: {error.strerror}") from error
    return list(files)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Repeat what occurs twice: kube-scheduler's readers know no YAML anchors."""
        return True
