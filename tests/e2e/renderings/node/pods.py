"""A pod from its creation on, as a kubelet treats it."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.renderings.node.api import Api, MissingError
from tests.e2e.renderings.node.containers import Container, Images
from tests.e2e.renderings.node.inputs import Volumes, environment, service_links
from tests.e2e.renderings.node.network import Opens, Sandbox
from tests.e2e.renderings.node.services import Endpoint
from tools.planes.embedded import Object
from tools.planes.programs import Program, ProgramError

AGAIN_SECONDS = 0.5
"""Between tries to mount volumes, and between probes until the first success."""

MOST_RESTARTS = 2
"""Of a pod's containers; a machine that is too busy is no failure of a rendering."""


class Pod:
    """One pod on the node.

    Attributes:
        ready: Whether all its containers are.
        failed: Whether it has failed for good.
        problem: Why it is not ready, "" if it is.
    """

    def __init__(
        self,
        api: Api,
        obj: Object,
        sandbox: Sandbox,
        opens: Opens,
        images: Images,
        folder: Path,
    ) -> None:
        self.ready = self.failed = False
        self.problem = "not started yet"
        self._restarts = 0
        self.obj = obj
        self._api = api
        self._sandbox = sandbox
        self._folder = folder
        spec = obj["spec"]
        self._sidecars, self._containers = (
            [Container(obj, each, sandbox, opens, images, folder) for each in spec.get(kind) or ()]
            for kind in ("initContainers", "containers")
        )
        for each in spec.get("initContainers") or ():
            if each.get("restartPolicy") != "Always":
                raise NotImplementedError(f"an init container that ends: {each['name']}")

    @property
    def name(self) -> str:
        name: str = self.obj["metadata"]["name"]
        return name

    @property
    def programs(self) -> list[Program]:
        """The processes of its containers."""
        return [each.program for each in (*self._sidecars, *self._containers)]

    @property
    def endpoint(self) -> Endpoint:
        """How Services see it."""
        spec = self.obj["spec"]
        containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
        ports = {
            port["name"]: port["containerPort"]
            for each in containers
            for port in each.get("ports") or ()
        }
        return Endpoint(
            namespace=self.obj["metadata"]["namespace"],
            labels=self.obj["metadata"].get("labels") or {},
            ports=ports,
            address=self._sandbox.address,
            ready=self.ready,
        )

    async def run(self, services: Iterable[Object], files: dict[str, Path]) -> None:
        """Start its containers, ask their probes, and note in the API server what they say."""
        try:
            await self._place()
            await self._start(list(services), files)
            async with asyncio.TaskGroup() as group:
                for container in (*self._sidecars, *self._containers):
                    if "livenessProbe" in container.probes:
                        group.create_task(self._watch(container))
                group.create_task(self._follow())
        except (MissingError, ProgramError) as error:
            self.ready, self.failed, self.problem = False, True, str(error)

    async def _place(self) -> None:
        """Wait until a scheduler has given it a node."""
        self.problem = f"{self.obj['spec'].get('schedulerName')} has not placed it yet"
        metadata, placed = self.obj["metadata"], "uid" not in self.obj["metadata"]
        while not placed:
            now = await self._api.find("pods", metadata["namespace"], metadata["name"])
            placed = bool(now and now["spec"].get("nodeName"))
            await asyncio.sleep(0 if placed else AGAIN_SECONDS)

    async def _start(self, services: list[Object], files: dict[str, Path]) -> None:
        metadata, spec = self.obj["metadata"], self.obj["spec"]
        wanted = spec.get("enableServiceLinks", True)
        links = service_links(services, metadata["namespace"], wanted=wanted)
        volumes = None
        while volumes is None:
            try:
                volumes = await Volumes(self._api, self.obj, self._folder / "volumes").write()
            except MissingError as error:
                self.problem = str(error)  # a kubelet waits until it exists
                await asyncio.sleep(AGAIN_SECONDS)
        own = [*(spec.get("initContainers") or ()), *spec["containers"]]
        made = [(each, await environment(self._api, self.obj, each, links)) for each in own]
        self.problem = "its containers have not started yet"
        starts = [
            container.start(variables, volumes, files)
            for container, (_, variables) in zip(
                (*self._sidecars, *self._containers), made, strict=True
            )
        ]
        for start in starts[: len(self._sidecars)]:
            await start
        await asyncio.gather(*starts[len(self._sidecars) :])

    async def _follow(self) -> None:
        """Ask all readiness probes for ever."""
        probes = [
            each.probes["readinessProbe"]
            for each in (*self._sidecars, *self._containers)
            if "readinessProbe" in each.probes
        ]
        while True:
            answers = [await probe.succeeds() for probe in probes]
            problems = [probe.problem for probe in probes if probe.problem]
            ended = [p for p in self.programs if not p.running]
            problems += [f"{each.name} ended:\n{each.last_words()}" for each in ended]
            was, self.ready = self.ready, all(answers) and not ended
            self.problem = "\n".join(problems)
            if was != self.ready:
                await self.note_status()
            if ended and self._restarts == MOST_RESTARTS:
                raise ProgramError(self.problem)
            for each in ended:  # such as a kube-scheduler that has lost its Lease
                self._restarts += 1
                await each.start()
            period = min((probe.period for probe in probes), default=AGAIN_SECONDS)
            await asyncio.sleep(period if self.ready else min(period, AGAIN_SECONDS))

    async def _watch(self, container: Container) -> None:
        """Ask a liveness probe for ever.

        Raises:
            ProgramError: A kubelet would restart the container.
        """
        probe, failed = container.probes["livenessProbe"], 0
        while failed < probe.allowed:
            failed = 0 if await probe.succeeds() else failed + 1
            await asyncio.sleep(probe.period)
        raise ProgramError(f"{container.name} is not alive: {probe.problem}")

    async def note_status(self) -> None:
        """Write the pod's status."""
        metadata = self.obj["metadata"]
        if "uid" not in metadata:  # a static pod: no mirror of it is needed
            return
        ready = "True" if self.ready else "False"
        conditions = [{"type": kind, "status": ready} for kind in ("Ready", "ContainersReady")]
        conditions.append({"type": "PodScheduled", "status": "True"})
        address = self._sandbox.address
        status: Object = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        await self._api.send("PATCH", path, {"status": {**status, "conditions": conditions}})
