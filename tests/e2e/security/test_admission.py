"""What a thief may do with a token of Moorage: the API server checks what RBAC cannot.

Gate and `moorage capacity` have files of their own, with what else is about them.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio

from gateway.leadership.election import LeaseStore
from moorage_host.kube import KubeClient, KubeStatusError, Response, connect
from moorage_host.kube.events import EventWriter
from tools.planes.embedded import Object
from tools.planes.objects import binding, node, pod
from tools.planes.real import BY_TOKEN, OUR_NAMESPACE, RealPlane
from tools.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
OUR_EVENTS = EVENTS.replace("default", OUR_NAMESPACE)
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{OUR_NAMESPACE}/leases"
ASKED = {"type": "moorage.io/RetryRequested", "status": "True", "reason": "License"}
OTHER = {"type": "Ready", "status": "True"}
PLACEHOLDER = "capacity-3f2c1a9e-0000-4000-8000-1234567890ab"
RESTRICTED = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
}
NO_RIGHTS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


class Plane(NamedTuple):
    """A control plane, and clients by the account whose token they have."""

    plane: RealPlane
    clients: Mapping[str, KubeClient]


async def send(
    client: KubeClient, verb: str, path: str, body: Object, *, try_only: bool = False
) -> Response:
    kind = "application/strategic-merge-patch+json" if verb == "PATCH" else "application/json"
    return await client.request(
        verb,
        path,
        query={"dryRun": "All"} if try_only else None,
        body=msgspec.json.encode(body),
        content_type=kind,
        timeout=10,
    )


def event(controller: str, kind: str = "Pod", *, namespace: str = "default") -> Object:
    return {
        "metadata": {"generateName": "e-", "namespace": namespace},
        "eventTime": "2026-11-29T00:00:00.000000Z",
        "reportingController": controller,
        "reportingInstance": "i",
        "action": "Binding",
        "reason": "FailedBinding",
        "type": "Warning",
        "regarding": {"kind": kind, "namespace": namespace, "name": "ours"},
    }


def lease(name: str, **metadata: Any) -> Object:
    spec = {"holderIdentity": "thief", "leaseDurationSeconds": 15}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def status(**fields: Any) -> Object:
    return {"status": fields}


def metadata(**fields: Any) -> Object:
    return {"metadata": fields}


class Refused(NamedTuple):
    """A request, and what the API server says."""

    account: str
    verb: str
    path: str
    body: Object
    message: str


OWN_NAME = "may write Events in its own name only"
ABOUT = "may report on pods only, and the gateway on its policy"
OWN_LEASE = "may write its own Lease only"
LEASE_DATA = "of a Lease's metadata only"
NO_METADATA = "may not change metadata"
NOT_ITS_OWN = "may change its own annotations only"


def of_binder() -> Iterator[tuple[str, str, Object, str]]:
    binds = f"{PODS}/ours/binding"
    apparmor = {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}
    loose = binding("ours", "n1", annotations=apparmor)
    for namespace in ("kube-system", OUR_NAMESPACE):
        there = f"/api/v1/namespaces/{namespace}/pods/dns/binding"
        theirs = binding("dns", "n1", namespace=namespace)
        yield "POST", there, theirs, "may bind no pods in this namespace; see admission.bound"
    yield "POST", binds, binding("ours", "n1", labels={"app": "bank"}), "may give pods no labels"
    yield "POST", binds, loose, f"no annotations of Kubernetes: {', '.join(apparmor)}"
    it = f"{PODS}/{PLACEHOLDER}/binding"
    yield "POST", it, binding(PLACEHOLDER, "n1"), "may bind no placeholders"
    ours, foreign = f"{PODS}/ours/status", f"{PODS}/foreign/status"
    yield "PATCH", foreign, status(conditions=[ASKED]), "pods of Moorage's profiles only"
    yield "PATCH", ours, status(conditions=[OTHER]), "no condition but moorage.io/RetryRequested"
    yield "PATCH", ours, status(phase="Failed"), "nothing but conditions"
    yield "PATCH", ours, status(nominatedNodeName="n1"), "nothing but conditions"
    yield "PATCH", ours, status(podIPs=[{"ip": "10.0.0.1"}]), "nothing but conditions"
    yield "PATCH", ours, metadata(labels={"app": "b"}), NO_METADATA
    yield "PATCH", ours, metadata(annotations={"a": "b"}), NO_METADATA
    yield "PATCH", ours, metadata(finalizers=["a.b/c"]), NO_METADATA
    yield "POST", EVENTS, event("kubelet"), OWN_NAME
    yield "POST", EVENTS, event("moorage-gateway"), OWN_NAME
    yield "POST", EVENTS, event("moorage-binder", "Node"), ABOUT
    series = {"count": 2, "lastObservedTime": "2026-11-29T00:00:00.000000Z"}
    yield "PATCH", f"{EVENTS}/foreign", {"series": series}, OWN_NAME


def refused() -> Iterator[Refused]:
    for row in of_binder():
        yield Refused("binder", *row)
    policy = event("moorage-gateway", "Pod", namespace=OUR_NAMESPACE)
    theirs = event("kubelet", "MoorageConfiguration", namespace=OUR_NAMESPACE)
    yield Refused("gateway", "POST", OUR_EVENTS, policy, ABOUT)
    yield Refused("gateway", "POST", OUR_EVENTS, theirs, OWN_NAME)
    yield Refused("capacity", "POST", EVENTS, event("moorage-binder"), OWN_NAME)
    yield Refused("capacity", "POST", EVENTS, event("moorage-capacity", "Node"), ABOUT)
    for account, own, other in (
        ("gateway", "moorage-gateway", "moorage-capacity"),
        ("capacity", "moorage-capacity", "moorage-scheduler"),
    ):
        yield Refused(account, "POST", LEASES, lease(other), OWN_LEASE)
        for change in ({"labels": {"a": "b"}}, {"annotations": {"a": "b"}}):
            yield Refused(account, "POST", LEASES, lease(own, **change), LEASE_DATA)
    n1 = f"{NODES}/n1"
    for node_change in (metadata(labels={"a": "b"}), {"spec": {"unschedulable": True}}):
        yield Refused("annotator", "PATCH", n1, node_change, "may change nothing but annotations")
    for value in ("c", None):
        yield Refused("annotator", "PATCH", n1, metadata(annotations={"a": value}), NOT_ITS_OWN)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def real(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """Have the policies in force; one of two pods is ours."""
    plane = RealPlane(tmp_path_factory.mktemp("admission"), profiles=("moorage", "batch"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(plane.stop)
        await plane.start()
        clients: dict[str, KubeClient] = {}
        for account in ("admin", *BY_TOKEN):
            clients[account] = await connect(plane.kubeconfig(account))
            stack.push_async_callback(clients[account].close)
        named = {**event("kubelet"), "metadata": {"name": "foreign", "namespace": "default"}}
        for path, obj in (
            (PODS, pod("ours", "batch", labels={"app": "a"})),
            (PODS, pod("foreign", "default-scheduler")),
            (NODES, node("n1", annotations={"a": "b"})),
            (EVENTS, named),
        ):
            (await send(clients["admin"], "POST", path, obj)).check()

        async def in_force(row: Refused) -> None:
            client = clients[row.account]

            async def is_refused() -> bool:
                answer = await send(client, row.verb, row.path, row.body, try_only=True)
                return answer.status == 422

            await until(is_refused, 60)

        await asyncio.gather(*map(in_force, refused()))
        yield Plane(plane, clients)


@pytest.mark.parametrize(
    "row", [pytest.param(r, id=f"{n}-{r.account}") for n, r in enumerate(refused())]
)
async def test_what_is_not_a_process_own_work_is_refused(real: Plane, row: Refused) -> None:
    answer = await send(real.clients[row.account], row.verb, row.path, row.body)
    assert (answer.status, row.message in answer.body.decode()) == (422, True), answer.body


async def test_the_binder_asks_for_other_attempts_and_binds(real: Plane) -> None:
    binder = real.clients["binder"]
    for reason in ("License", "Again"):
        asked = status(conditions=[{**ASKED, "reason": reason}])
        (await send(binder, "PATCH", f"{PODS}/ours/status", asked)).check()
    bind = binding("ours", "n1", annotations={"moorage.io/decision": "n1", "example.com/gpu": "0"})
    (await send(binder, "POST", f"{PODS}/ours/binding", bind)).check()
    test = binding("test", "n1", namespace=OUR_NAMESPACE)  # that of `helm test`
    path = f"/api/v1/namespaces/{OUR_NAMESPACE}/pods/test/binding"
    assert (await send(binder, "POST", path, test)).status == 404


@pytest.mark.parametrize(
    ("account", "controllers", "kind", "namespace"),
    [
        ("binder", ("moorage-binder", "batch"), "Pod", "default"),
        ("capacity", ("moorage-capacity",), "Pod", "default"),
        ("gateway", ("moorage-gateway",), "MoorageConfiguration", OUR_NAMESPACE),
    ],
)
async def test_events_are_written(
    real: Plane, account: str, controllers: tuple[str, ...], kind: str, namespace: str
) -> None:
    ends: list[str] = []
    writer = EventWriter(real.clients[account], "instance", tries=1, count=ends.append)
    writing = asyncio.create_task(writer.run())
    about = {"apiVersion": "v1", "kind": kind, "name": "ours", "namespace": namespace}
    # The gateway may create Events only; others count repetitions up.
    for controller, _ in itertools.product(controllers, range(1 if account == "gateway" else 2)):
        writer.report(about, "Odd", "note", action="A", controller=controller, series=controller)
    await writer.flush(20)
    writing.cancel()
    assert set(ends) == {"written"}


@pytest.mark.parametrize("account", ["gateway", "capacity"])
async def test_a_lease_is_held_by_who_has_its_token(
    real: Plane, account: str, tmp_path: Path
) -> None:
    """Tokens in a cluster are bound to their pods."""
    admin = real.clients["admin"]
    own = pod(f"{account}-a", "default-scheduler", spec=RESTRICTED)
    own["metadata"]["namespace"] = OUR_NAMESPACE
    own["spec"]["serviceAccountName"] = account
    own["spec"]["containers"][0]["securityContext"] = NO_RIGHTS
    pods = PODS.replace("default", OUR_NAMESPACE)
    made = msgspec.json.decode((await send(admin, "POST", pods, own)).check().body)
    bound = {
        "kind": "Pod",
        "apiVersion": "v1",
        "name": made["metadata"]["name"],
        "uid": made["metadata"]["uid"],
    }
    path = f"/api/v1/namespaces/{OUR_NAMESPACE}/serviceaccounts/{account}/token"
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": bound, "expirationSeconds": 600},
    }
    answer = msgspec.json.decode((await send(admin, "POST", path, asked)).check().body)
    config = tmp_path / "bound.kubeconfig"
    real.plane.write_kubeconfig(config, {"token": answer["status"]["token"]}, OUR_NAMESPACE)
    client = await connect(config)
    try:
        store = LeaseStore(client, OUR_NAMESPACE, f"moorage-{account}", usual=15)
        before = await store.read(10)
        for holder in (f"{account}-a_1", f"{account}-a_1", ""):  # takes, renews, releases it
            before = await store.write(before, holder, seconds=15, epoch=1, timeout=10)
        with pytest.raises(KubeStatusError, match="by the pod only whose token asks for it"):
            await store.write(before, f"{account}-b_1", seconds=15, epoch=1, timeout=10)
        # What others have noted there stays, and is no reason to refuse.
        marked = metadata(labels={"team": "a"}, annotations={"note": "b"})
        (await send(admin, "PATCH", f"{LEASES}/moorage-{account}", marked)).check()
        before = await store.write(
            await store.read(10), f"{account}-a_2", seconds=15, epoch=2, leaving=True, timeout=10
        )
        before.document["metadata"]["finalizers"] = ["a.b/c"]
        with pytest.raises(KubeStatusError, match=LEASE_DATA):
            await store.write(before, f"{account}-a_2", seconds=15, epoch=2, timeout=10)
    finally:
        await client.close()


async def test_others_are_not_checked(real: Plane) -> None:
    change = status(conditions=[OTHER])
    (await send(real.clients["admin"], "PATCH", f"{PODS}/foreign/status", change)).check()
