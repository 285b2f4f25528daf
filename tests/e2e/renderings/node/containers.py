"""Containers as processes of this machine, with exactly what their pod's template gives them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.renderings.node import launch
from tests.e2e.renderings.node.api import MissingError
from tests.e2e.renderings.node.environment import command
from tests.e2e.renderings.node.images import LINKS, Images
from tests.e2e.renderings.node.network import Opens, Sandbox
from tests.e2e.renderings.node.probes import Probe
from tools.planes.embedded import Object
from tools.planes.programs import Program


class Container:
    """One container.

    Attributes:
        program: Its process.
        probes: What the template wants to be asked, by kind.
    """

    def __init__(
        self,
        pod: Object,
        container: Object,
        sandbox: Sandbox,
        opens: Opens,
        images: Images,
        folder: Path,
    ) -> None:
        self.name: str = container["name"]
        kinds = ("startupProbe", "readinessProbe", "livenessProbe")
        self.probes = {
            kind: Probe(container[kind], container, sandbox, opens)
            for kind in kinds
            if kind in container
        }
        self._pod = pod
        self._container = container
        self._sandbox = sandbox
        self._images = images
        self._folder = folder / self.name
        self.program = Program(
            name=f"{pod['metadata']['name']}/{self.name}",
            command=(),
            log=self._folder / "log",
            ready=self._has_started,
        )

    async def start(
        self, variables: Mapping[str, str], volumes: Mapping[str, Path], files: Mapping[str, Path]
    ) -> None:
        """Start the process and wait until its startup probe succeeds.

        Args:
            variables: Its environment, without what the image has.
            volumes: The pod's volumes by name.
            files: What every container of the pod has, by path.

        Raises:
            MissingError: The template lacks something.
            ProgramError: The process ends, or does not get ready.
        """
        (self._folder / "layers").mkdir(parents=True, exist_ok=True)
        spec = self._folder / "spec.json"
        spec.write_text(json.dumps(self._spec(variables, volumes, files)))
        script = str(Path(launch.__file__))
        self.program.command = [sys.executable, "-IS", script, str(spec)]
        await self.program.start()

    async def _has_started(self) -> bool:
        probe = self.probes.get("startupProbe")
        return probe is None or await probe.succeeds()

    def _spec(
        self, variables: Mapping[str, str], volumes: Mapping[str, Path], files: Mapping[str, Path]
    ) -> Object:
        image = self._images.find(self._container["image"])
        user, group, groups = self._identity(image.user)
        own = self._container.get("securityContext", {})
        given = {**self._images.runtime, **image.files, **files}
        mounts = [_mount(path, source) for path, source in given.items()]
        for wanted in self._container.get("volumeMounts") or ():
            source = volumes[wanted["name"]] / wanted.get("subPath", "")
            read_only = wanted.get("readOnly", False)
            mounts.append(_mount(wanted["mountPath"], source, read_only=read_only))
        on_host = self._pod["spec"].get("hostNetwork", False)
        hostname = "control-plane" if on_host else self._pod["metadata"]["name"]
        return {
            "hostname": hostname,
            "network": str(self._sandbox.path),
            "folder": str(self._folder / "layers"),
            "image": str(image.root) if image.root else None,
            "links": LINKS,
            # What lies above other mounts comes first.
            "mounts": sorted(mounts, key=lambda mount: str(mount["path"]).count("/")),
            "read_only": own.get("readOnlyRootFilesystem", False),
            "directory": self._container.get("workingDir", "/"),
            "user": user,
            "group": group,
            "groups": groups,
            "command": command(self._container, variables),
            "environment": {**image.environment, "HOSTNAME": hostname, **variables},
        }

    def _identity(self, usual: int) -> tuple[int, int, list[int]]:
        whole = self._pod["spec"].get("securityContext", {})
        merged = whole | self._container.get("securityContext", {})
        user = merged.get("runAsUser", usual)
        if merged.get("runAsNonRoot") and not user:
            raise MissingError(f"container {self.name} has runAsNonRoot and would run as root")
        groups = [*whole.get("supplementalGroups", ())]
        groups += [whole["fsGroup"]] if "fsGroup" in whole else []
        return user, merged.get("runAsGroup", 0), groups


def _mount(path: str, source: Path, *, read_only: bool = True) -> Object:
    devices = path.startswith(("/dev", "/proc"))
    return {"path": path, "source": str(source), "read_only": read_only and not devices}
