"""Binds that are refused, get lost or come too late."""

import asyncio

import msgspec
import pytest

from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import binding, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

FINALIZER = "example.com/hold"


async def test_the_api_server_refuses_what_it_must(world: World) -> None:
    made = await world.create(
        pod("bound"),
        pod("gated", spec={"schedulingGates": [{"name": "example.com/wait"}]}),
        pod("going", finalizers=(FINALIZER,)),
        pod("free", "nobody"),
    )
    await _bind(world, binding("bound", "n1"))
    (await world.request("DELETE", f"{PODS}/going")).check()
    uid = next(p["metadata"]["uid"] for p in made if p["metadata"]["name"] == "free")

    def aimed(target: Object) -> Object:
        return {**binding("free", "n1"), "target": target}

    refusals = {
        "again": await _bind(world, binding("bound", "n1")),
        "elsewhere": await _bind(world, binding("bound", "n2")),
        "gated": await _bind(world, binding("gated", "n1")),
        "going": await _bind(world, binding("going", "n1")),
        "gone": await _bind(world, binding("gone", "n1")),
        "other uid": await _bind(world, binding("free", "n1", uid="another")),
        "other name": await _bind(world, binding("free", "n1"), "bound"),
        "no target": await _bind(world, aimed({"kind": "Node"})),
        "not a node": await _bind(world, aimed({"kind": "Service", "name": "n1"})),
        "not a binding": await _bind(world, pod("free", "nobody"), "free"),
    }
    refused = 'Operation cannot be fulfilled on pods/binding "{}": '
    stored = (
        'Operation cannot be fulfilled on pods "free": StorageError: invalid object, Code: 4, Key: '
        "/registry/pods/default/free, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: another, UID in object meta: {uid}"
    )
    bound = refused.format("bound") + 'pod bound is already assigned to node "n1"'
    going = refused.format("going") + "pod going is being deleted, cannot be assigned to a host"
    gates = refused.format("gated") + "pod gated has non-empty .spec.schedulingGates"
    kinds = 'target.kind: Unsupported value: "Service": supported values: "Node", "<empty>"'
    other = (
        'Pod in version "v1" cannot be handled as a Binding: converting (v1.Pod) to '
        "(core.Binding): unknown conversion"
    )
    assert refusals == {
        "again": (409, "Conflict", bound),
        "elsewhere": (409, "Conflict", bound),
        "gated": (409, "Conflict", gates),
        "going": (409, "Conflict", going),
        "gone": (404, "NotFound", 'pods "gone" not found'),
        "other uid": (409, "Conflict", stored),
        "other name": (
            400,
            "BadRequest",
            "name in URL does not match name in Binding object",
        ),
        "no target": (500, "", "target.name: Required value"),
        "not a node": (500, "", kinds),
        "not a binding": (400, "BadRequest", other),
    }


async def test_the_older_path_binds_too_and_does_not_look_at_the_uid(world: World) -> None:
    path = PODS.removesuffix("pods") + "bindings"
    early = await world.request("POST", path, binding("late", "n1"))
    await world.create(pod("late", "nobody"))
    made = await world.request("POST", path, binding("late", "n1", uid="another"))
    assert (early.status, made.status) == (404, 201)
    assert (await world.pods())["late"]["spec"]["nodeName"] == "n1"

    listed = await world.request("GET", path)
    kinds = {each["name"]: each["verbs"] for each in (await world.read("/api/v1"))["resources"]}
    assert listed.status == 405
    assert kinds["bindings"] == kinds["pods/binding"] == ["create"]


async def test_a_binding_may_name_a_node_that_does_not_exist_and_carries_annotations(
    world: World,
) -> None:
    await world.create(pod("p", "nobody", score={"n1": 1}))
    carried = {"annotations": {"example.com/device": "3"}, "labels": {"example.com/zone": "a"}}

    assert (await _bind(world, binding("p", "nowhere", **carried)))[0] == 201

    bound = (await world.pods())["p"]
    assert bound["spec"]["nodeName"] == "nowhere"
    assert bound["metadata"]["annotations"]["example.com/device"] == "3"
    assert "steered/score" in bound["metadata"]["annotations"]
    assert bound["metadata"].get("labels") == {"example.com/zone": "a"}
    conditions = {c["type"]: c["status"] for c in bound["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"


async def test_moorage_says_why_a_bind_failed(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    bound, gated, going, gone, dead = await world.create(
        pod("bound"),
        pod("gated", spec={"schedulingGates": [{"name": "example.com/wait"}]}),
        pod("going", finalizers=(FINALIZER,)),
        pod("gone"),
        pod("reborn"),
    )
    for obj in (bound, gated, going, gone, dead):  # or they might have claims that got lost
        await world.filter(obj, ["n1", "n2"])
    for name in ("going", "gone", "reborn"):
        (await world.request("DELETE", f"{PODS}/{name}")).check()
    (reborn,) = await world.create(pod("reborn"))

    assert await world.bind(bound, "n1") == ""
    assert await world.bind(bound, "n1") == ""  # the same decision again is a success
    errors = {
        "elsewhere": await world.bind(bound, "n2"),
        "gated": await world.bind(gated, "n1"),
        "going": await world.bind(going, "n1"),
        "gone": await world.bind(gone, "n1"),
        "reborn": await world.bind(dead, "n1"),
    }

    lead = "binder service: pod default/"
    absent = 'API server answered 404 NotFound: pods "gone" not found'
    uids = [obj["metadata"]["uid"] for obj in (reborn, dead)]
    assert errors == {
        "elsewhere": f"{lead}bound is bound to node n1, not n2",
        "gated": f"{lead}gated has scheduling gates: example.com/wait",
        "going": f"{lead}going is being deleted",
        "gone": f"{lead}gone was not bound to node n1: {absent}",
        "reborn": f"{lead}reborn has uid {uids[0]}, not {uids[1]}: it was replaced",
    }
    assert (await world.places())["reborn"] == ""


async def test_a_bind_whose_answer_is_lost_is_a_success(world: World) -> None:
    await world.nodes(node("n1"))
    (made,) = await world.create(pod("p"))
    await world.filter(made, ["n1"])
    world.proxy.lose_bindings = True

    assert await world.bind(made, "n1") == ""

    assert (await world.places())["p"] == "n1"
    assert [status for name, status in world.proxy.binds if name == "p"] == [201]


async def test_a_bind_that_happens_after_kube_scheduler_gave_up(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    async with world.scheduler(httpTimeout="1s"):
        world.proxy.after.clear()
        await world.create(pod("p"))
        note = await world.event("p", "/bind")
        world.proxy.after.set()
        place = (await world.bound("p"))["p"]
        # Whoever comes next is scheduled as usual, and the first stays where it is.
        await world.create(pod("next"))
        await world.bound("next")

    assert "Client.Timeout exceeded" in note
    assert (await world.places())["p"] == place
    assert [status for name, status in world.proxy.binds if name == "p"].count(201) == 1


async def test_a_pod_that_is_deleted_while_it_is_bound(world: World) -> None:
    await world.nodes(node("n1", cpu="1"))
    async with world.scheduler():
        world.proxy.before.clear()
        await world.create(pod("going", cpu="900m"))

        async def hangs() -> bool:
            return world.proxy.waiting > 0

        await world.until(hangs)
        (await world.request("DELETE", f"{PODS}/going")).check()
        world.proxy.before.set()
        # Its place is free again, for kube-scheduler and for Moorage.
        await world.create(pod("next", cpu="900m"))
        assert await world.bound() == {"next": "n1"}


async def test_a_pod_gets_no_other_node_while_its_bind_is_under_way(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    (made,) = await world.create(pod("p", "second"))
    await world.filter(made, ["n1", "n2"])
    world.proxy.before.clear()
    bind = asyncio.create_task(world.bind(made, "n1"))
    try:

        async def under_way() -> bool:
            return world.proxy.waiting > 0

        await world.until(under_way)
        # As kube-scheduler asks that was restarted meanwhile.
        answer = await world.filter(made, ["n1", "n2"])
        assert "not known yet whether an earlier bind has put the pod on node n1" in answer["Error"]
        assert "not known yet" in await world.bind(made, "n2")
    finally:
        world.proxy.before.set()
    assert await bind == ""
    assert (await world.bound("p"))["p"] == "n1"


async def _bind(world: World, body: Object, name: str = "") -> tuple[int, str, str]:
    path = f"{PODS}/{name or body['metadata']['name']}/binding"
    response = await world.request("POST", path, body)
    status: Object = msgspec.json.decode(response.body)
    return response.status, status.get("reason", ""), status.get("message", "")
