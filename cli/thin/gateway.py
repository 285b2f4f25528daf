"""Reaches the gateway's admin port by kubectl, and asks it over HTTP."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.shared.gateway.pods import AdminPort, Object, admin_port, is_active, is_ready, services_in

SECONDS = 10.0
"""How long kubectl, and the gateway, may take."""

ANSWER_BYTES = 64 << 20
"""How long an answer may be."""

LABEL = "app.kubernetes.io/part-of=moorage"
EXTENSION = "moorage.io/gateway"
IDENTITY = "moorage-gateway"
SECRET = "operator-tls"  # noqa: S105 - a name
"""As the command has them, in `cli.shared.gateway` and `moorage_host.tls`."""


class ThinError(Exception):
    """There is no answer; the message has what to do."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl with the options that name the cluster."""

    options: Sequence[str]

    def command(self, *arguments: str) -> list[str]:
        """Return a command line."""
        return ["kubectl", *self.options, *arguments]

    def read(self, *arguments: str) -> Any:
        """Return what a command prints as JSON; raises ThinError."""
        try:
            run = subprocess.run(  # noqa: S603 - kubectl, without a shell
                self.command(*arguments, "-o", "json"),
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ThinError(f"kubectl cannot be asked: {error}") from error
        if run.returncode:
            raise ThinError(run.stderr.decode(errors="replace").strip())
        return json.loads(run.stdout)


class HttpPort:
    """The admin port of a gateway, at an address of this machine."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._address = (host, port)
        self._tls = tls

    def get(self, path: str, statuses: Sequence[int] = (200,), **query: str) -> Any:
        """Return an answer, decoded from JSON; raises ThinError."""
        connection = http.client.HTTPConnection(*self._address, timeout=SECONDS)
        asked = f"{urllib.parse.quote(path)}?{urllib.parse.urlencode(query)}"
        try:
            plain = socket.create_connection(self._address, SECONDS)
            secured = self._tls and self._tls.wrap_socket(plain, server_hostname=IDENTITY)
            connection.sock = secured or plain
            connection.request("GET", asked)
            response = connection.getresponse()
            answer = json.loads(response.read(ANSWER_BYTES))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ThinError(f"the gateway's admin port gives no answer: {error}") from error
        finally:
            connection.close()
        if response.status not in statuses:
            problem = answer.get("error") if isinstance(answer, dict) else ""
            raise ThinError(str(problem or f"the gateway answers {response.status}"))
        return answer


@contextlib.contextmanager
def reached(kubectl: Kubectl, namespace: str) -> Iterator[HttpPort]:
    """Give the gateway in a namespace, or that of `moorage up`; raises ThinError."""
    if admin := _embedded(kubectl):
        address = urllib.parse.urlsplit(admin)
        yield HttpPort(address.hostname or "", address.port or 80)
        return
    pod = _pod(moorage_pods(kubectl, namespace), namespace)
    tls = _operator(kubectl, namespace) if pod.is_secured else None
    with _forwarded(kubectl, pod) as port:
        yield HttpPort("127.0.0.1", port, tls)


def moorage_pods(kubectl: Kubectl, namespace: str) -> Sequence[Object]:
    """Return the pods of Moorage in a namespace; raises ThinError."""
    pods: Sequence[Object] = kubectl.read("get", "pods", "-n", namespace, "-l", LABEL)["items"]
    return pods


def context_of(kubectl: Kubectl) -> Mapping[str, Any]:
    """Return the kubeconfig, with nothing but what its context uses; raises ThinError."""
    config: Mapping[str, Any] = kubectl.read("config", "view", "--minify")
    return config


def _embedded(kubectl: Kubectl) -> str:
    """Return the admin port that `moorage up` wrote into its kubeconfig; "" without one."""
    for each in context_of(kubectl).get("clusters") or ():
        for extension in (each.get("cluster") or {}).get("extensions") or ():
            if extension.get("name") == EXTENSION:
                return str((extension.get("extension") or {}).get("admin", ""))
    return ""


def _pod(pods: Sequence[Object], namespace: str) -> AdminPort:
    """Return the gateway that decides: only that one is ready."""
    found = [
        (not is_ready(pod), str(pod["metadata"]["name"]), port)
        for pod in pods
        if is_active(pod)
        for service, container in services_in(pod)
        if service == "gateway" and (port := admin_port(pod, container))
    ]
    if not found:
        raise ThinError(f"no gateway runs in namespace {namespace}: give --gateway NAMESPACE")
    return min(found)[2]


def _operator(kubectl: Kubectl, namespace: str) -> ssl.SSLContext:
    """Return what connects with the operator's certificate; raises ThinError."""
    data = kubectl.read("get", "secret", SECRET, "-n", namespace).get("data") or {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (Path(folder) / name).write_bytes(base64.b64decode(data.get(name, "")))
        try:
            context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
            context.load_cert_chain(f"{folder}/tls.crt", f"{folder}/tls.key")
        except OSError as error:
            raise ThinError(f"Secret {namespace}/{SECRET} cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


@contextlib.contextmanager
def _forwarded(kubectl: Kubectl, pod: AdminPort) -> Iterator[int]:
    """Forward a free port of this machine to a pod; give the port."""
    command = kubectl.command(
        "port-forward", "-n", pod.namespace, f"pod/{pod.name}", f":{pod.port}"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:  # noqa: S603 - the same
        late = threading.Timer(SECONDS, process.kill)
        late.start()
        try:
            assert process.stdout  # noqa: S101 - see above
            assert process.stderr  # noqa: S101 - see above
            line = process.stdout.readline().decode()  # "Forwarding from 127.0.0.1:40123 -> 9090"
            late.cancel()
            port = line.partition("->")[0].strip().rpartition(":")[2]
            if not port.isdigit():
                process.kill()
                problem = process.stderr.read().decode(errors="replace").strip()
                raise ThinError(f"cannot forward a port to pod {pod}: {problem or 'no answer'}")
            yield int(port)
        finally:
            late.cancel()
            process.kill()
