"""The pods of a rendering as processes of this machine, with what their templates give them.

Arguments, environment, volumes, user and probes are those of the template, the files those of the
image. Instead of a cluster's network each pod has an address, and /etc/hosts has its Services.
"""

import base64
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path

import aiohttp

from tests.e2e.renderings.cluster import Cluster, MissingError
from tools.build import find
from tools.image.isolated import TMPFS, Isolated
from tools.planes.embedded import Object
from tools.planes.programs import Program

SCHEDULER = "kube-scheduler"
PROBES = ("readinessProbe", "livenessProbe")


def scheduler_image(folder: Path) -> Isolated:
    """Make an image that has kube-scheduler and nothing else."""
    for name in ("dev", "proc", "tmp", "etc"):
        (folder / name).mkdir(parents=True)
    return Isolated(root=folder, user="0:0", environment={"PATH": "/usr/local/bin"})


class Pod:
    """One pod.

    Attributes:
        obj: The pod as the API server has it, or as its file says.
        address: Where it listens.
        ready: Whether all its probes succeeded when they were asked last.
        problem: Why it is not ready, "" if it is.
        programs: The processes of its containers.
    """

    def __init__(self, cluster: Cluster, obj: Object, address: str, folder: Path) -> None:
        self.obj = obj
        self.address = address
        self.ready = False
        self.problem = "not started yet"
        self.programs: list[Program] = []
        self._cluster = cluster
        self._folder = folder
        self._group = obj["spec"].get("securityContext", {}).get("fsGroup")
        self._is_on_host = obj["spec"].get("hostNetwork", False)
        (folder / "etc").mkdir(parents=True)
        (folder / "etc" / "nsswitch.conf").write_text("hosts: files\n")
        self.write_hosts(())

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.obj["metadata"]["name"])

    @property
    def containers(self) -> list[Object]:
        """Its containers, sidecars first."""
        spec = self.obj["spec"]
        sidecars = spec.get("initContainers") or []
        assert all(each.get("restartPolicy") == "Always" for each in sidecars)
        return [*sidecars, *spec["containers"]]

    async def start(self, images: Mapping[str, Isolated]) -> None:
        """Start its containers, and wait until their startup probes succeed.

        Raises:
            MissingError: The template names what does not exist.
            ProgramError: A process ends, or does not get ready.
        """
        volumes = {
            each["name"]: await self._volume(each) for each in self.obj["spec"].get("volumes") or ()
        }
        for each in self.containers:
            self.programs.append(await self._program(each, volumes, images))
        self.problem = "its containers have not started yet"
        for program in self.programs:  # a sidecar is there before what asks it
            await program.start()

    async def look(self) -> None:
        """Ask all probes, and note in the API server what they say."""
        was = self.ready
        problems = [
            problem
            for each in self.containers
            for kind in PROBES
            if (problem := await self.problem_of(each, kind))
        ]
        problems += [f"{p.name} ended:\n{p.last_words()}" for p in self.programs if not p.running]
        self.ready, self.problem = not problems, "\n".join(problems)
        if was == self.ready or "uid" not in self.obj["metadata"]:  # of a static pod: no mirror
            return
        value = "True" if self.ready else "False"
        kinds = ("Ready", "ContainersReady")
        conditions = [{"type": kind, "status": value} for kind in kinds]
        conditions.append({"type": "PodScheduled", "status": "True"})
        status: Object = {"phase": "Running", "podIP": self.address, "conditions": conditions}
        namespace = self.obj["metadata"]["namespace"]
        path = f"/api/v1/namespaces/{namespace}/pods/{self.name}/status"
        status["podIPs"] = [{"ip": self.address}]
        await self._cluster.send("PATCH", path, {"status": status})

    async def problem_of(self, container: Object, kind: str) -> str:
        """Ask one probe as a kubelet does; return why it fails, "" if it does not."""
        if kind not in container:
            return ""
        probe = container[kind]
        get = probe["httpGet"]
        named = {port.get("name"): port["containerPort"] for port in container.get("ports") or ()}
        port = named.get(get["port"], get["port"])
        url = f"{get['scheme'].lower()}://{get.get('host', self.address)}:{port}{get['path']}"
        timeout = aiohttp.ClientTimeout(total=probe.get("timeoutSeconds", 1))
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(url, ssl=False, allow_redirects=False) as response,
            ):
                fine = 200 <= response.status < 400
                text = "" if fine else f"{response.status} {await response.text()}"[:2000]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            text = f"{type(error).__name__}: {error}"
        return f"{url}: {text}" if text else ""

    def write_hosts(self, services: Iterable[tuple[str, str]]) -> None:
        """Write which addresses names have: those of Services, but for pods on the host."""
        aliases = self.obj["spec"].get("hostAliases") or ()
        lines = ["127.0.0.1 localhost"]
        lines += [f"{each['ip']} {' '.join(each['hostnames'])}" for each in aliases]
        if not self._is_on_host:
            lines += [f"{address} {names}" for names, address in services]
        (self._folder / "etc" / "hosts").write_text("".join(f"{line}\n" for line in lines))

    async def _program(
        self, container: Object, volumes: Mapping[str, Path], images: Mapping[str, Isolated]
    ) -> Program:
        image = images[container["image"].rpartition("/")[2].partition(":")[0]]
        mounts: dict[str, str | Path] = {
            f"/etc/{name}": self._folder / "etc" / name for name in ("hosts", "nsswitch.conf")
        }
        for each in container.get("volumeMounts") or ():
            source = volumes[each["name"]] / each.get("subPath", "")
            is_scratch = volumes[each["name"]] == Path(TMPFS)
            assert is_scratch or each.get("readOnly"), f"{self.name} may write to {each}"
            mounts[each["mountPath"]] = TMPFS if is_scratch else source
        if container["command"][0] == SCHEDULER:
            mounts["/usr/local/bin/kube-scheduler"] = find(SCHEDULER)
        log = self._folder / f"{container['name']}.log"

        async def has_started() -> bool:
            return not await self.problem_of(container, "startupProbe")

        return Program(
            name=f"{self.name}/{container['name']}",
            command=image.command(
                *container["command"],
                *(container.get("args") or ()),
                mounts=mounts,
                user=self._user(container, image.user),
                groups=str(self._group or ""),
                hostname="" if self._is_on_host else self.name,
                environment=await self._environment(container),
            ),
            log=log,
            ready=has_started,
        )

    def _user(self, container: Object, usual: str) -> str:
        whole = self.obj["spec"].get("securityContext", {})
        merged = whole | container.get("securityContext", {})
        user = merged.get("runAsUser", usual.partition(":")[0])
        if merged.get("runAsNonRoot") and not int(user):
            raise MissingError(f"{container['name']} has runAsNonRoot and would run as root")
        return f"{user}:{merged.get('runAsGroup', 0)}"

    async def _environment(self, container: Object) -> dict[str, str]:
        """Return the variables of a container, and where it listens and finds the API server."""
        made = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self._cluster.plane.port),
            **{f"MOORAGE_{each}HOST": self.address for each in ("", "ADMIN_", "EXTENDER_")},
        }
        for source in container.get("envFrom") or ():
            made |= (await self._find("configmaps", source["configMapRef"]["name"]))["data"]
        return made | {each["name"]: each["value"] for each in container.get("env") or ()}

    async def _find(self, resource: str, name: str) -> Object:
        return await self._cluster.find(resource, self.obj["metadata"]["namespace"], name)

    # ---- volumes

    async def _volume(self, volume: Object) -> Path:
        """Write a volume; return where it is."""
        if "emptyDir" in volume:
            return Path(TMPFS)
        if "hostPath" in volume:
            return self._cluster.on_host(volume["hostPath"]["path"])
        mode = volume.get("projected", {}).get("defaultMode", 0o644)
        files: list[tuple[str, bytes, int]] = []
        for source in volume.get("projected", {}).get("sources") or (volume,):
            own = source.get("secret", source.get("configMap", {})).get("defaultMode", mode)
            files += [(name, content, own) async for name, content in self._content(source)]
        return self._written(volume["name"], files)

    def _written(self, volume: str, files: Iterable[tuple[str, bytes, int]]) -> Path:
        folder = self._folder / "volumes" / volume
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        for name, content, mode in files:
            (folder / name).write_bytes(content)
            if self._group is not None:
                os.chown(folder / name, 0, self._group)
                mode |= 0o440
            (folder / name).chmod(mode)
        return folder

    async def _content(self, source: Object) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the files of a part of a volume."""
        if secret := source.get("secret"):
            data = (await self._find("secrets", secret["secretName"]))["data"]
            for key, value in data.items():
                yield key, base64.b64decode(value)
        elif config := source.get("configMap"):
            for key, value in (await self._find("configmaps", config["name"]))["data"].items():
                yield key, value.encode()
        elif token := source.get("serviceAccountToken"):
            yield token["path"], (await self._cluster.token(self.obj, token)).encode()
        elif fields := source.get("downwardAPI"):
            for item in fields["items"]:
                assert item["fieldRef"]["fieldPath"] == "metadata.namespace"
                yield item["path"], str(self.obj["metadata"]["namespace"]).encode()
        else:
            raise NotImplementedError(f"a volume of an unknown kind: {source}")


def behind(services: Iterable[Object], pods: Iterable[Pod]) -> Iterator[tuple[str, str]]:
    """Yield the names of each Service with the address of each pod that it leads to."""
    known = list(pods)
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        if not spec.get("selector"):
            continue
        whole = f"{metadata['name']}.{metadata['namespace']}.svc"
        for pod in known:
            if selects(service, pod.obj) and (pod.ready or spec.get("publishNotReadyAddresses")):
                yield f"{metadata['name']} {whole} {whole}.cluster.local", pod.address


def selects(service: Object, pod: Object) -> bool:
    """Whether a Service leads to a pod; the ports must be those where the pod listens."""
    labels = pod["metadata"].get("labels") or {}
    wanted = service["spec"].get("selector") or {}
    is_near = service["metadata"]["namespace"] == pod["metadata"].get("namespace")
    if not (wanted and is_near and wanted.items() <= labels.items()):
        return False
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    ports = {p.get("name"): p["containerPort"] for c in containers for p in c.get("ports") or ()}
    for port in service["spec"]["ports"]:
        target = ports.get(port["targetPort"], port["targetPort"])
        assert target == port["port"], f"{service['metadata']['name']}: {port}"
        assert target in ports.values(), f"{service['metadata']['name']}: {port}"
    return True
