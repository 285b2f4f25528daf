"""A cluster whose controllers run; the test plays kube-scheduler, the server the kubelet."""

from collections.abc import Callable
from typing import Any

import msgspec

from sandbox.apiserver import ApiServer
from sandbox.apiserver.resources.table import parse
from sandbox.workloads import RESOURCES
from tools.inprocess.api import Api, Object
from tools.waiting import until

NAMESPACE = "default"


class Workloads:
    """Creates workloads and looks at their pods."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.api = Api(server)

    def create(self, kind: str, name: str = "web", **spec: Any) -> Object:
        """Create a workload whose pods are called app=NAME, as kubectl would."""
        labels = {"app": name}
        container = {"name": "main", "image": "web:1"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        whole: Object = {"selector": {"matchLabels": labels}, "template": template, **spec}
        if kind == "Job":
            del whole["selector"]
        version = RESOURCES[kind].api_version
        metadata = {"name": name, "namespace": NAMESPACE}
        obj = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": whole}
        return self.api.create(self._path(kind), obj)

    def change(self, kind: str, name: str = "web", **spec: Any) -> None:
        """Replace fields of a workload's spec."""
        old = self.read(kind, name)
        self.server.cluster.update(
            parse(f"{self._path(kind)}/{name}"), {**old, "spec": {**old["spec"], **spec}}
        )

    def change_image(self, kind: str, image: str, name: str = "web") -> None:
        template = msgspec.json.decode(
            msgspec.json.encode(self.read(kind, name)["spec"]["template"])
        )
        template["spec"]["containers"][0]["image"] = image
        self.change(kind, name, template=template)

    def read(self, kind: str, name: str = "web") -> Object:
        return self.api.read(f"{self._path(kind)}/{name}")

    def all(self, kind: str) -> dict[str, Object]:
        """Return all objects of a kind by name."""
        objects = self.server.cluster.store.objects(RESOURCES[kind].stored_as)
        return {obj["metadata"]["name"]: obj for obj in objects}

    def pods(self) -> dict[str, Object]:
        return self.all("Pod")

    def images(self) -> list[str]:
        """Return the images of all pods, sorted."""
        return sorted(pod["spec"]["containers"][0]["image"] for pod in self.pods().values())

    def events(self, reason: str) -> list[str]:
        """Return the messages of the events with a reason."""
        found = self.server.cluster.store.objects("events")
        return [str(event["message"]) for event in found if event["reason"] == reason]

    def delete(self, kind: str, name: str) -> None:
        self.api.delete(f"{self._path(kind)}/{name}")

    def place(self, *names: str) -> None:
        """Bind pods, by default all that have no node; the kubelet then starts them."""
        for name, pod in self.pods().items():
            if (names and name not in names) or pod["spec"].get("nodeName"):
                continue
            self.api.bind(name, "n1")

    async def until(self, condition: Callable[[], object]) -> None:
        await until(condition)

    async def until_pods(self, count: int) -> None:
        await until(lambda: len(self.pods()) == count)

    async def until_ready(self, count: int) -> None:
        """Place pods until so many are ready."""

        def ready() -> bool:
            self.place()
            found = [
                condition
                for pod in self.pods().values()
                for condition in pod["status"].get("conditions", ())
                if (condition["type"], condition["status"]) == ("Ready", "True")
            ]
            return len(found) == count

        await until(ready)

    async def until_status(self, kind: str, **fields: Any) -> None:
        """Wait until the status of the workload has these fields."""

        def equal() -> bool:
            status = self.read(kind).get("status", {})
            return all(status.get(key) == value for key, value in fields.items())

        await until(equal)

    def condition(self, kind: str, condition: str) -> tuple[str, str]:
        """Return status and reason of a condition of the workload."""
        conditions = self.read(kind)["status"]["conditions"]
        (found,) = (each for each in conditions if each["type"] == condition)
        return found["status"], found["reason"]

    @staticmethod
    def _path(kind: str) -> str:
        resource = RESOURCES[kind]
        root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        return f"{root}/namespaces/{NAMESPACE}/{resource.plural}"
