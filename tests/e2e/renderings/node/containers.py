"""Containers as processes of this machine, with exactly what the template of their pod gives them.

And their images and probes. `moorage` is the image that is built from deploy/Dockerfile;
`kube-scheduler` has its program and nothing else. Probes are asked as a kubelet asks them.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.e2e.renderings.node import launch
from tests.e2e.renderings.node.api import MissingError
from tests.e2e.renderings.node.inputs import command
from tests.e2e.renderings.node.network import Opens, Sandbox
from tools.build import find
from tools.image.isolated import Isolated
from tools.planes.embedded import Object
from tools.planes.programs import Program

DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = {"/dev/fd": "/proc/self/fd", "/dev/stdout": "fd/1", "/dev/stderr": "fd/2"}
"""What container runtimes add to every image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image.

    Attributes:
        root: Its files, None for none.
        user: Who runs its programs where a template does not say.
        environment: What it sets.
        files: Further files, by their path in the container.
    """

    root: Path | None = None
    user: int = 0
    environment: Mapping[str, str]
    files: Mapping[str, Path] = field(default_factory=dict)


class Images:
    """All images that there are."""

    def __init__(self, moorage: Isolated) -> None:
        runtime = {f"/dev/{each}": Path("/dev") / each for each in DEVICES}
        self.runtime = runtime | {"/proc": Path("/proc")}
        user = int(moorage.user.partition(":")[0])
        paths = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        program = {"/usr/local/bin/kube-scheduler": find("kube-scheduler")}
        self._images = {
            "moorage": Image(root=moorage.root, user=user, environment=moorage.environment),
            "kube-scheduler": Image(environment=paths, files=program),
        }

    def find(self, name: str) -> Image:
        """Return an image by its name in a template, such as registry.k8s.io/kube-scheduler:v1.

        Raises:
            KeyError: There is none of this name.
        """
        return self._images[name.partition("@")[0].rpartition("/")[2].partition(":")[0]]


DEFAULTS = {"periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3, "successThreshold": 1}


class Probe:
    """One probe.

    Attributes:
        problem: Why the last try failed, "" if it did not.
        period: Seconds between tries.
        allowed: How many tries in a row may fail.
    """

    def __init__(self, probe: Object, container: Object, sandbox: Sandbox, opens: Opens) -> None:
        values = DEFAULTS | probe
        self.problem = "not asked yet"
        self.period = float(values["periodSeconds"])
        self.allowed = int(values["failureThreshold"])
        self._timeout = float(values["timeoutSeconds"])
        if set(probe) - set(DEFAULTS) - {"httpGet", "initialDelaySeconds"}:
            raise NotImplementedError(f"a probe with {sorted(probe)}")
        get = probe["httpGet"]
        port = get["port"]
        if isinstance(port, str):
            named = {each.get("name"): each["containerPort"] for each in container["ports"]}
            port = named[port]
        host = get.get("host") or sandbox.address
        scheme = get.get("scheme", "HTTP").lower()
        self._url = f"{scheme}://{host}:{port}{get.get('path', '/')}"
        # The kubelet asks from the network of the node, in which pods on the host network are.
        self._opens = sandbox.opens if host == "127.0.0.1" else opens

    async def succeeds(self) -> bool:
        """Ask once."""
        # Kubelets check no certificate.
        connector = aiohttp.TCPConnector(ssl=False, socket_factory=self._opens)
        timeout = aiohttp.ClientTimeout(total=self._timeout)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.get(self._url, allow_redirects=False) as response,
            ):
                fine = 200 <= response.status < 400
                self.problem = "" if fine else f"{response.status} {await response.text()}"[:2000]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.problem = f"{type(error).__name__}: {error}"
        if self.problem:
            self.problem = f"{self._url}: {self.problem}"
        return not self.problem


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
