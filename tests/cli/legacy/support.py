"""A converted Policy, and the command that converts it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from cli.config.policies import choose_policy
from cli.legacy.convert import Conversion
from cli.legacy.names import FILTERS
from cli.main import main
from sandbox.scheduler.config import Configuration, load_configuration

Object = dict[str, Any]

POLICY = Path(__file__).parents[2] / "data" / "legacy-policy.json"
HEADER: Object = {"kind": "Policy", "apiVersion": "v1"}


class Converted:
    """A Policy's two documents, read by those that read them, and the notes without the file."""

    def __init__(self, conversion: Conversion, folder: Path) -> None:
        for name, text in conversion.documents.items():
            (folder / name).write_text(text)
        scheduler = folder / "kube-scheduler-config.yaml"
        self.configuration: Configuration = load_configuration(scheduler)
        self.upstream = yaml.safe_load(scheduler.read_text())
        (self.profile,) = self.upstream["profiles"]
        self.beside = yaml.safe_load((folder / "policy.yaml").read_text())
        self.policy = choose_policy(folder / "policy.yaml", ()).resolved
        self.notes = [note.partition(": ")[2] for note in conversion.notes]

    @property
    def filters(self) -> list[str]:
        """Return which filters of kube-scheduler run."""
        runs = self.configuration.profiles[0].filters
        return [name for name in FILTERS if name in runs]

    @property
    def scores(self) -> Object:
        """Return the weights that kube-scheduler's scores are given."""
        enabled = self.profile.get("plugins", {}).get("score", {}).get("enabled", ())
        return {entry["name"]: entry["weight"] for entry in enabled}

    @property
    def arguments(self) -> Object:
        return {entry["name"]: entry["args"] for entry in self.profile.get("pluginConfig", ())}

    def off(self, point: str) -> set[str]:
        """Return the plugins that do not run at a point."""
        sets = [self.profile["plugins"].get(each, {}) for each in ("multiPoint", point)]
        return {entry["name"] for each in sets for entry in each.get("disabled", ())}


Translate = Callable[..., Converted]
"""Converts the Policy with these fields."""


def moorage(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["convert-policy", *map(str, arguments)])


def names(*listed: str) -> list[Object]:
    return [{"name": name} for name in listed]


def weighted(**weights: int) -> list[Object]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]
