"""Runs `moorage simulate` on pods and nodes of a test."""

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from moorage import FilterPlugin, NodeManifest, Pod, ScorePlugin

SECONDS = 60.0
"""How long a simulation may take, unless the test gives another time."""

SimulatedPlugin = type[FilterPlugin] | type[ScorePlugin]


class SimulationError(Exception):
    """The simulation failed; the message is what the command wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPlacements:
    """Where pods went, in the order in which they were decided on.

    Attributes:
        nodes: The node of each pod, by the pod's name, or NAMESPACE/NAME outside of `default`.
        reasons: Why a pod has none.
        report: All that `moorage simulate -o json` has.
    """

    nodes: Mapping[str, str | None]
    reasons: Mapping[str, str]
    report: Mapping[str, Any]


class Simulate:
    """Places pods with plugins.

    Args:
        folder: Makes a folder for the files of a run.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder

    def __call__(
        self,
        *plugins: SimulatedPlugin,
        nodes: Iterable[NodeManifest],
        pods: Iterable[Pod],
        existing: Iterable[Pod] = (),
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        weights: Mapping[str, int] | None = None,
        timeout: float = SECONDS,
    ) -> SimulatedPlacements:
        """Place *pods*, one after another, and return where they went.

        Args:
            plugins: Their classes; the files that define them are loaded as services load them.
            nodes: The nodes.
            pods: The pods to place.
            existing: Pods that are on nodes already.
            arguments: The arguments of plugins, by their names, as a policy has them.
            weights: The weights of score plugins, by their names.
            timeout: How many seconds it may take.

        Raises:
            SimulationError: The command failed, such as for arguments that a plugin refuses.
            subprocess.TimeoutExpired: It took too long.
        """
        folder = self._folder()
        cluster = [_object("Node", node) for node in nodes]
        cluster += [_object("Pod", pod) for pod in existing]
        _write(folder / "cluster.json", _listed(cluster))
        _write(folder / "pods.json", _listed([_object("Pod", pod) for pod in pods]))
        _write(folder / "policy.json", _policy(plugins, arguments or {}, weights or {}))
        command = [sys.executable, "-c", "from moorage_apps.command import main; main()"]
        command += ["simulate", "-o", "json", "--cluster", "cluster.json", "--pods", "pods.json"]
        command += ["--config", "policy.json"]
        files = dict.fromkeys(str(Path(inspect.getfile(plugin)).resolve()) for plugin in plugins)
        for file in files:
            command += ["--plugin", file]
        run = subprocess.run(  # noqa: S603 - Moorage's own command
            command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
        )
        if run.returncode:
            raise SimulationError(run.stderr.strip() or f"exit code {run.returncode}")
        return _placements(json.loads(run.stdout))


def _policy(
    plugins: Iterable[SimulatedPlugin],
    arguments: Mapping[str, Mapping[str, Any]],
    weights: Mapping[str, int],
) -> Mapping[str, Any]:
    enabled = []
    for plugin in plugins:
        entry: dict[str, Any] = {"name": plugin.name}
        if plugin.name in weights:
            entry["weight"] = weights[plugin.name]
        enabled.append(entry)
    return {
        "apiVersion": "moorage.io/v1alpha1",
        "kind": "MoorageConfiguration",
        "profiles": [
            {
                "schedulerName": "moorage",
                "plugins": {"multiPoint": {"enabled": enabled}},
                "pluginConfig": [
                    {"name": name, "args": dict(args)} for name, args in arguments.items()
                ],
            }
        ],
    }


def _placements(report: Mapping[str, Any]) -> SimulatedPlacements:
    found = report["policies"][0]["placements"]
    names = [each["pod"].removeprefix("default/") for each in found]
    return SimulatedPlacements(
        nodes={name: each["node"] or None for name, each in zip(names, found, strict=True)},
        reasons={
            name: each.get("reason", "")
            for name, each in zip(names, found, strict=True)
            if not each["node"]
        },
        report=report,
    )


def _object(kind: str, value: NodeManifest | Pod) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(value)
    for containers in ("initContainers", "containers"):
        # Required by the API, and nothing that most tests are about.
        for number, container in enumerate(fields.get("spec", {}).get(containers, ())):
            container.setdefault("name", f"{containers.lower()}-{number}")
            container.setdefault("image", "app:1")
    return {"apiVersion": "v1", "kind": kind, **fields}


def _listed(items: list[dict[str, Any]]) -> Mapping[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content))
