"""A real control plane on free loopback ports: etcd, kube-apiserver, kube-scheduler.

Each of our processes has the identity and the rights that deploy/ gives it: the RBAC objects are
those that are deployed. The gateway and the binder say who they are by token, as in a cluster; the
administrator and kube-scheduler by client certificate."""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from cli.up.processes import free_ports
from moorage_host.kube import KubeClient, connect
from sandbox.apiserver.server import kubeconfig
from tools.build import SCHEDULER, find, minor_version
from tools.manifests.rendering import render
from tools.planes.embedded import Identity, Object, answers
from tools.planes.programs import Program

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")


class Certificate(NamedTuple):
    """A certificate and its private key: two PEM files."""

    crt: Path
    key: Path

    @property
    def user(self) -> dict[str, str]:
        """The user of a kubeconfig that shows this certificate."""
        return {"client-certificate": str(self.crt), "client-key": str(self.key)}


class Authority:
    """Signs certificates; all files are in one folder, which must exist.

    Attributes:
        crt: Its own certificate, for servers to check others with.
    """

    def __init__(self, directory: Path, name: str = "clients") -> None:
        self._directory = directory
        self._own = self._request(name, f"/CN={name}")
        self.crt = self._own.crt

    def sign(self, name: str, user: str, groups: Sequence[str] = ()) -> Certificate:
        """Return a new certificate that says who somebody is; *name* is that of the files."""
        subject = "".join([*(f"/O={group}" for group in groups), f"/CN={user}"])
        signer = (f"-CA={self._own.crt}", f"-CAkey={self._own.key}")
        return self._request(name, subject, *signer, "-addext", "extendedKeyUsage=clientAuth")

    def _request(self, name: str, subject: str, *more: str) -> Certificate:
        made = Certificate(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        files = ("-out", str(made.crt), "-keyout", str(made.key))
        _openssl("req", "-x509", *NEW_KEY, "-subj", subject, *files, *more)
        return made


def private_key(path: Path) -> None:
    """Write a new private key on the curve P-256, as PEM."""
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))


def _openssl(*words: str) -> None:
    program = shutil.which("openssl")
    assert program, "openssl is not installed: it signs the certificates of the real control plane"
    run = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


HOST = "127.0.0.1"
OUR_NAMESPACE = "moorage"
RBAC_KINDS = (
    "Namespace",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
BY_TOKEN: tuple[Identity, ...] = ("gateway", "binder", "gate", "capacity", "annotator")
BY_CERTIFICATE: tuple[Identity, ...] = ("admin", "scheduler")

# Without a controller manager nobody takes this taint off new nodes, makes the service account that
# the second plugin wants in every namespace, or lets go of volumes that the third protects.
DISABLED_ADMISSION = "TaintNodesByCondition,ServiceAccount,StorageObjectInUseProtection"

POD_GROUPS = "scheduling.k8s.io/v1beta1"
WITH_GROUPS = ("GenericWorkload=true", f"{POD_GROUPS}=true")
"""Feature gates and APIs that are off by default."""
if minor_version() == "1.36":
    POD_GROUPS = "scheduling.k8s.io/v1alpha2"
    gates = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
    WITH_GROUPS = (gates, f"{POD_GROUPS}=true")

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  resources: [{resources: [pods/binding, bindings]}]
- level: Metadata
  verbs: [create, delete]
  resources: [{resources: [pods]}]
- level: Metadata
  userGroups: ["system:serviceaccounts:moorage"]
- level: Metadata
  users: ["system:kube-scheduler"]
- level: None
"""


class RealPlane:
    """etcd and kube-apiserver, and kube-schedulers that use them."""

    name = "real"

    def __init__(
        self,
        directory: Path,
        feature_gates: str = "",
        runtime_config: str = "",
        *,
        deployed: bool = True,
        profiles: Sequence[str] = ("moorage",),
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare it, by default with the rights of deploy/ for pods of some *profiles*.

        *options* are of kube-apiserver. Gates and APIs are on beside those of the environment.
        """
        self.directory = directory
        self._feature_gates = _joined(os.environ.get("FEATURE_GATES"), feature_gates)
        self._runtime_config = _joined(os.environ.get("RUNTIME_CONFIG"), runtime_config)
        self._deployed = deployed
        self._profiles = profiles
        self._options = options
        self.audit_log = directory / "audit.jsonl"
        self.authority = Authority(directory)
        etcd, peer, api = free_ports(3)
        self.port = api
        self.url = f"https://{HOST}:{api}"
        self._tokens = {identity: secrets.token_hex(16) for identity in BY_TOKEN}
        self._etcd = self._make_etcd(f"http://{HOST}:{etcd}", f"http://{HOST}:{peer}")
        self._api = self._make_api(api, f"http://{HOST}:{etcd}")

    async def start(self) -> None:
        """Start etcd and kube-apiserver, and create what deploy/ needs to have rights."""
        (self.directory / "tokens.csv").write_text("".join(self._token_lines()))
        (self.directory / "audit-policy.yaml").write_text(AUDIT_POLICY)
        private_key(self.directory / "service-accounts.key")
        self._write_kubeconfigs()
        await self._etcd.start()
        await self._api.start()
        if self._deployed:
            await self._create_deployed()

    async def stop(self) -> None:
        """Stop both: without etcd, kube-apiserver would take a minute."""
        await self._api.stop()
        await self._etcd.stop()
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)  # hundreds of megabytes

    def kubeconfig(self, identity: Identity) -> Path:
        return self.directory / f"{identity}.kubeconfig"

    def write_kubeconfig(self, file: Path, user: Object, namespace: str = "default") -> None:
        """Write a kubeconfig with credentials of any kind."""
        authority = {"certificate-authority": str(self._ca)}
        config = kubeconfig(self.url, "real", cluster=authority, user=user, namespace=namespace)
        file.write_text(json.dumps(config))

    def scheduler(self, name: str, config: Object) -> Program:
        (port,) = free_ports(1)
        path = "healthz" if os.environ.get(SCHEDULER) else "readyz"  # 1.30 has no readyz
        file = self.directory / f"{name}.yaml"
        connection = {"kubeconfig": str(self.kubeconfig("scheduler"))}
        connection |= config.get("clientConnection", {})
        file.write_text(json.dumps({**config, "clientConnection": connection}))
        return Program(
            name=name,
            command=[
                str(find("kube-scheduler")),
                f"--config={file}",
                f"--bind-address={HOST}",
                f"--secure-port={port}",
                f"--cert-dir={self.directory / name}",
                "--v=2",
                *([f"--feature-gates={self._feature_gates}"] if self._feature_gates else []),
            ],
            log=self.directory / f"{name}.log",
            ready=lambda: answers(f"https://{HOST}:{port}/{path}", ssl=False),
        )

    def programs(self) -> list[Program]:
        return [self._etcd, self._api]

    def _make_etcd(self, url: str, peer: str) -> Program:
        options = {
            "data-dir": str(self.directory / "etcd"),
            "listen-client-urls": url,
            "advertise-client-urls": url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "log-level": "warn",
        }
        return Program(
            name="etcd",
            command=[
                str(find("etcd")),
                "--unsafe-no-fsync",
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            log=self.directory / "etcd.log",
            ready=lambda: answers(f"{url}/health"),
        )

    def _make_api(self, port: int, etcd: str) -> Program:
        key = self.directory / "service-accounts.key"
        options = {
            "etcd-servers": etcd,
            "bind-address": HOST,
            "secure-port": str(port),
            "cert-dir": str(self._certificates),
            "client-ca-file": str(self.authority.crt),
            "token-auth-file": str(self.directory / "tokens.csv"),
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(key),
            "service-account-signing-key-file": str(key),
            "service-cluster-ip-range": "10.0.0.0/24",
            "endpoint-reconciler-type": "none",
            "disable-admission-plugins": DISABLED_ADMISSION,
            "audit-policy-file": str(self.directory / "audit-policy.yaml"),
            "audit-log-path": str(self.audit_log),
            "delete-collection-workers": "16",
            "feature-gates": self._feature_gates,
            "runtime-config": self._runtime_config,
            "v": "1",
            **self._options,
        }
        return Program(
            name="kube-apiserver",
            command=[
                str(find("kube-apiserver")),
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            log=self.directory / "kube-apiserver.log",
            ready=lambda: answers(f"{self.url}/readyz", ssl=False),
        )

    @property
    def _certificates(self) -> Path:
        return self.directory / "certificates"

    @property
    def _ca(self) -> Path:
        # kube-apiserver makes its own authority and appends it to its certificate.
        return self._certificates / "apiserver.crt"

    def _write_kubeconfigs(self) -> None:
        for identity, token in self._tokens.items():
            self.write_kubeconfig(self.kubeconfig(identity), {"token": token}, OUR_NAMESPACE)
        for identity in BY_CERTIFICATE:
            certificate = self.authority.sign(identity, *who(identity))
            self.write_kubeconfig(self.kubeconfig(identity), certificate.user)

    def _token_lines(self) -> Iterator[str]:
        for identity, token in self._tokens.items():
            user, groups = who(identity)
            yield f'{token},{user},{identity},"{",".join(groups)}"\n'

    async def _create_deployed(self) -> None:
        client = await connect(self.kubeconfig("admin"))
        try:
            for obj in deployed_objects(self._profiles):
                body = msgspec.json.encode(obj)
                answer = await client.request("POST", path_of(obj), body=body, timeout=30)
                answer.check()
        finally:
            await client.close()


def _joined(*settings: str | None) -> str:
    return ",".join(filter(None, settings))


def who(identity: Identity) -> tuple[str, tuple[str, ...]]:
    """Return the user and the groups of an identity, as the API server names them."""
    if identity == "admin":
        return "admin", ("system:masters",)
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{OUR_NAMESPACE}")
    return f"system:serviceaccount:{OUR_NAMESPACE}:{identity}", groups


@asynccontextmanager
async def real_plane(*, deployed: bool = True) -> AsyncIterator[tuple[RealPlane, KubeClient]]:
    """Run a real control plane in a folder that goes afterwards; yield it and an admin's client."""
    with tempfile.TemporaryDirectory() as name:
        plane = RealPlane(Path(name), deployed=deployed)
        try:
            await plane.start()
            client = await connect(plane.kubeconfig("admin"))
            try:
                yield plane, client
            finally:
                await client.close()
        finally:
            await plane.stop()


def deployed_objects(profiles: Sequence[str] = ("moorage",)) -> Iterator[Object]:
    """Yield the namespace and what gives and limits rights in deploy/, also to all options."""
    values = {
        "highAvailability": {"enabled": True},
        "statefulSets": {"enabled": True},
        "bearerTokens": {"metrics": True},
        "gate": {"enabled": True},
        "capacity": {"enabled": True},
        "annotator": {"enabled": True},
        "policy": {"profiles": [{"schedulerName": name} for name in profiles]},
    }
    for obj in render(values):
        if obj["kind"] in RBAC_KINDS:
            yield obj


def path_of(obj: Object) -> str:
    """Return the path of the collection that an object is created in."""
    version, metadata, kind = obj["apiVersion"], obj["metadata"], obj["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{inside}/{plural}"
