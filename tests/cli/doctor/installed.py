"""An installation as deploy/ has it: real processes, and an embedded API server with objects."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from cli.certs.certificates import keep_certificates, secrets
from cli.doctor.installation.installation import Installation, read_installation
from cli.shared.gateway.options import GatewayOptions
from sandbox.apiserver import ApiServer
from sandbox.apiserver.settings import Settings
from tests.scenarios.proxy import Proxy
from tools.inprocess.api import Api, Object
from tools.manifests.rendering import DEPLOY, installed
from tools.planes.kubelet import HOST, forward
from tools.planes.moorage import Moorage
from tools.planes.real import path_of

POLICY = DEPLOY / "files" / "policy.yaml"
NAMESPACE = "moorage"
FORWARD = "/api/v1/namespaces/{namespace}/pods/{pod}/portforward"


class Installed:
    """Processes, and the API server with what deploy/ applies.

    Attributes:
        api: The objects, with all rights.
        options: How doctor gets there.
        directory: Where everything is.
    """

    def __init__(self, directory: Path, server: ApiServer) -> None:
        self.directory = directory
        self.api = Api(server)
        self.certificates = directory / "certs"
        self.kubeconfig = directory / "through-proxy.kubeconfig"
        self._own = directory / "kubeconfig"
        self.options = GatewayOptions(kubeconfig=self.kubeconfig)
        self._moorage = Moorage(
            directory,
            lambda _: self._own,
            services=("filter", "scorer", "binder"),
            certificates=self.certificates,
            awaited=("gateway",),
        )

    def options_of_admin(self) -> Sequence[str]:
        """Return the options with which the gateway is asked without the API server."""
        tls = self.certificates / "operator"
        return f"--admin={self._moorage.admin}", f"--tls={tls}"

    async def read(self, **options: Any) -> Installation:
        """Read it as the command does."""
        return await read_installation(self.options, options.get("config"))

    @asynccontextmanager
    async def started(self) -> AsyncIterator["Installed"]:
        """Start everything; stop it in the end."""
        keep_certificates(self.certificates, namespace=NAMESPACE)
        async with AsyncExitStack() as stack:
            self._own.write_text(self.api.server.kubeconfig())
            # As one with kubelets, it also forwards ports.
            proxy = Proxy(self.directory, self._own, [web.get(FORWARD, forward)])
            assert await proxy.start(stack) == self.kubeconfig
            self._create_objects()
            (self.directory / "policy.yaml").write_text(POLICY.read_text())
            await stack.enter_async_context(self._moorage.started())
            await self._call()
            yield self

    @asynccontextmanager
    async def changed(self, path: str, change: Any) -> AsyncIterator[None]:
        """Change an object while the block runs; *change* gets a copy, and returns what counts."""
        before = self.api.read(path)
        self._put(path, change(yaml.safe_load(yaml.safe_dump(before))))
        try:
            yield
        finally:
            self._put(path, before)

    @asynccontextmanager
    async def with_object(self, folder: str, obj: Object) -> AsyncIterator[None]:
        """Have one more object while the block runs."""
        self.api.create(folder, obj)
        try:
            yield
        finally:
            self.api.delete(f"{folder}/{obj['metadata']['name']}")

    def _put(self, path: str, obj: Object) -> None:
        """Replace an object; a pod, whose spec cannot change, by another one."""
        folder, _, _ = path.rpartition("/")
        if not folder.endswith("/pods"):
            self.api.replace(path, _anew(obj))
            return
        self.api.delete(path)
        self.api.create(folder, _anew(obj))
        self.api.replace(f"{path}/status", _anew(obj))

    def _create_objects(self) -> None:
        others = [*installed("second-scheduler"), *self._secrets()]
        for obj in others:
            self.api.create(path_of(obj), obj)
        for obj in others:
            if obj["kind"] == "Deployment":
                self._run(obj)
        user = _pod("web", {"schedulerName": "moorage", "containers": [{"name": "c"}]})
        user["metadata"]["namespace"] = "default"
        user["spec"]["nodeName"] = "node-1"
        self.api.create("/api/v1/namespaces/default/pods", user)

    def _run(self, deployment: Object) -> None:
        """Create the pod of a Deployment, whose ports are those of the process here."""
        name, template = deployment["metadata"]["name"], deployment["spec"]["template"]
        spec = yaml.safe_load(yaml.safe_dump({**template["spec"], "nodeName": "node-1"}))
        for port in spec["containers"][0].get("ports", ()):
            if port["name"] == "admin":
                port["containerPort"] = int(self._moorage.admin_of(name).rpartition(":")[2])
        created = self.api.create(
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            _pod(f"{name}-1", spec, template["metadata"]["labels"]),
        )
        ready = {"type": "Ready", "status": "True"}
        status = {"phase": "Running", "podIP": HOST, "hostIP": HOST, "conditions": [ready]}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}-1/status"
        self.api.replace(path, {**created, "status": status})
        path = f"{path_of(deployment)}/{name}"
        count = deployment["spec"].get("replicas", 1)
        ran = {**self.api.read(path), "status": {"replicas": count, "readyReplicas": count}}
        self.api.replace(f"{path}/status", ran)

    def _secrets(self) -> list[Object]:
        text = secrets(self.certificates, NAMESPACE)
        return list(yaml.safe_load_all(text))

    async def _call(self) -> None:
        """Call the extender as kube-scheduler would."""
        folder = self.certificates / "scheduler"
        context = ssl.create_default_context(cafile=folder / "ca.crt")
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        url = f"{self._moorage.extender}/filter"
        pod = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {}}
        body: Object = {"Pod": pod, "Nodes": None, "NodeNames": []}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json=body, ssl=context, server_hostname="moorage-gateway") as answer,
        ):
            assert answer.status == 200, await answer.text()


@asynccontextmanager
async def installation(directory: Path) -> AsyncIterator[Installed]:
    """Run an installation."""
    settings = Settings(version="v1.36.1+sandbox")
    async with ApiServer(settings) as server, Installed(directory, server).started() as running:
        yield running


def event(message: str, name: str = "web", uid: str = "") -> Object:
    """Return an Event of kube-scheduler about a pod."""
    now = datetime.now(UTC).strftime("%FT%TZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": name, "uid": uid},
        "reason": "FailedScheduling",
        "type": "Warning",
        "message": message,
        "lastTimestamp": now,
        "count": 1,
    }


def _anew(obj: Object) -> Object:
    """Return an object without the version with which it was read."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("resourceVersion", "uid")}
    return {**obj, "metadata": metadata}


def _pod(name: str, spec: Object, labels: Object | None = None) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels or {}},
        "spec": {
            **spec,
            "containers": [{"image": "moorage", **each} for each in spec["containers"]],
        },
    }
