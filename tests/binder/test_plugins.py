"""Bind plugins around a bind: their order, refusals, failures, and what they never change."""

import asyncio
from typing import Any, ClassVar

import pytest

from moorage import Annotated, Arguments, Binding, BindPlugin, Meta, Refusal
from moorage_host.kube import KubeClient
from services.binder.binding.outcomes import BindError, BindReason, BindResult
from tools.inprocess.api import Api
from tools.inprocess.binder import BINDINGS, World, policy_of, refused
from tools.waiting import until

READS = ("get", "pods")


class Traced(BindPlugin, abstract=True):
    """Writes down what happens to it."""

    trace: ClassVar[list[str]] = []

    async def start(self) -> None:
        self.trace.append(f"{self.name} starts")

    async def stop(self) -> None:
        self.trace.append(f"{self.name} stops")


class Volume(Traced):
    """Provisions a volume, and says where."""

    class Args(Arguments):
        size: Annotated[int, Meta(gt=0)] = 1

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        self.trace.append(f"volume of {self.args.size} for {binding.pod.name} on {binding.node}")
        binding.annotate("example.com/volume", binding.node)
        return None

    async def post_bind(self, binding: Binding) -> None:
        self.trace.append(f"volume in use by {binding.profile}")


class Scan(Traced):
    """Refuses pods whose scan is not over."""

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        scanned = binding.pod.labels.get("scanned") == "yes"
        self.trace.append(f"scanned: {scanned}")
        return None if scanned else Refusal("the scan is not over")


class Breaks(Traced):
    """Fails at both points."""

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        raise ValueError("no storage")

    async def post_bind(self, binding: Binding) -> None:
        raise ValueError("nobody listens")


class Waits(Traced):
    """Waits for ever before the bind."""

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        self.trace.append("waits")
        await asyncio.Event().wait()
        return None


class Light(Traced):
    """Needs no pod."""

    reads_pod = False

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        binding.annotate("example.com/light", "yes")
        return None

    async def post_bind(self, binding: Binding) -> None:
        self.trace.append("light is bound")


class Broken(Traced):
    """Does not start."""

    async def start(self) -> None:
        self.trace.append("tries to start")
        raise OSError("no such bus")

    async def post_bind(self, binding: Binding) -> None:
        raise AssertionError("it did not start")


PLUGINS = (Volume, Scan, Breaks, Waits, Light, Broken)


@pytest.fixture
def trace() -> list[str]:
    Traced.trace.clear()
    return Traced.trace


@pytest.fixture
def world(client: KubeClient) -> World:
    return World(client, plugins=PLUGINS)


async def unbound(world: World, api: Api, *plugins: str, **more: Any) -> BindError:
    error = await refused(world.bind(api.pod(), policy=policy_of(*plugins, **more)))
    assert api.node_of() is None
    return error


async def test_plugins_run_in_order_before_and_after_the_write(
    world: World, api: Api, trace: list[str]
) -> None:
    pod, given = api.pod(labels={"scanned": "yes"}), {"example.com/given": "yes"}
    policy = policy_of("Scan", "Volume")
    assert await world.bind(pod, policy=policy, annotations=given) is BindResult.BOUND
    await world.binder.drain()
    written = api.read_pod()["metadata"]["annotations"]
    assert written == {**given, "example.com/volume": "node-a"}
    assert trace == [
        "Scan starts",
        "Volume starts",
        "scanned: True",
        "volume of 1 for web on node-a",
        "volume in use by default-scheduler",
    ]
    assert world.observed.plugins == [
        ("Scan", "PreBind", "ok"),
        ("Volume", "PreBind", "ok"),
        ("Volume", "PostBind", "ok"),
    ]


async def test_a_plugin_that_comes_after_the_time_of_a_bind_is_not_asked_and_not_blamed(
    world: World, api: Api
) -> None:
    asked: Any = {"policy": policy_of("Light"), "profile": "default-scheduler", "seconds": 0.01}
    assert (await refused(world.bind(api.pod(), **asked))).reason is BindReason.DEADLINE
    await world.binder.drain()
    assert world.observed.plugins == []


async def test_a_refusal_leaves_the_pod_unbound_and_later_plugins_alone(
    world: World, api: Api, trace: list[str]
) -> None:
    error = await unbound(world, api, "Scan", "Volume")
    assert error.reason is BindReason.REFUSED
    assert str(error) == "pod default/web was not bound: plugin Scan: the scan is not over"
    assert trace[-1] == "scanned: False"
    assert world.observed.plugins == [("Scan", "PreBind", "refused")]
    assert world.observed.ends == [error]


async def test_a_failure_refuses_the_bind_and_names_the_line(world: World, api: Api) -> None:
    error = await unbound(world, api, "Breaks")
    assert error.reason is BindReason.PLUGIN_FAILED
    assert str(error).startswith(
        "pod default/web was not bound: plugin Breaks failed in pre_bind: ValueError: no storage"
    )
    assert "(tests/binder/test_plugins.py:" in str(error)
    assert world.observed.plugins == [("Breaks", "PreBind", "failed")]


async def test_a_failure_may_be_ignored_a_refusal_may_not(world: World, api: Api) -> None:
    await unbound(world, api, "Scan", failure_policy="Ignore")
    policy = policy_of("Breaks", "Volume", failure_policy="Ignore")
    assert await world.bind(api.read_pod(), policy=policy) is BindResult.BOUND
    assert "example.com/volume" in api.read_pod()["metadata"]["annotations"]


async def test_a_failure_after_the_bind_undoes_nothing_and_is_counted(
    world: World, api: Api, trace: list[str]
) -> None:
    policy = policy_of("Breaks", "Volume", failure_policy="Ignore")
    assert await world.bind(api.pod(), policy=policy) is BindResult.BOUND
    await world.binder.drain()
    assert api.node_of() == "node-a"
    assert ("Breaks", "PostBind", "failed") in world.observed.plugins
    assert trace[-1] == "volume in use by default-scheduler"


async def test_a_plugin_has_its_time_budget(world: World, api: Api) -> None:
    error = await refused(
        world.bind(api.pod(), policy=policy_of("Waits", time_budget_seconds=0.05))
    )
    assert error.reason is BindReason.PLUGIN_FAILED
    assert "it took longer than its time budget of 0.05 s" in str(error)


async def test_a_plugin_must_leave_time_for_the_write(world: World, api: Api) -> None:
    error = await refused(world.bind(api.pod(), policy=policy_of("Waits"), seconds=0.6))
    assert "did not end in pre_bind before the bind's" in str(error)
    assert error.reason is BindReason.PLUGIN_FAILED
    assert api.node_of() is None


async def test_a_pod_that_is_bound_or_may_not_be_is_no_matter_for_plugins(
    world: World, api: Api, trace: list[str]
) -> None:
    bound, gated = (
        api.pod("bound", nodeName="node-a"),
        api.pod("gated", schedulingGates=[{"name": "example.com/g"}]),
    )
    policy = policy_of("Scan", "Volume")
    assert await world.bind(bound, policy=policy) is BindResult.ALREADY_BOUND
    assert "has scheduling gates" in str(await refused(world.bind(gated, policy=policy)))
    await world.binder.drain()
    assert trace == ["Scan starts", "Volume starts"]


async def test_a_pod_that_cannot_be_read_at_first_is_read_again(world: World, api: Api) -> None:
    api.fault(*READS, status=500)
    assert await world.bind(api.pod(), policy=policy_of("Volume")) is BindResult.BOUND
    assert world.observed.retries == ["500"]


async def test_plugins_that_need_no_pod_cost_no_request(world: World, api: Api) -> None:
    reads = api.count(*READS)
    pod = api.pod()
    policy = policy_of("Light")
    assert await world.bind(pod, policy=policy, profile="default-scheduler") is BindResult.BOUND
    assert reads() == 0
    assert api.read_pod()["metadata"]["annotations"] == {"example.com/light": "yes"}


async def test_plugins_are_told_of_a_bind_by_the_one_that_wrote_it(
    world: World, api: Api, trace: list[str]
) -> None:
    pod, policy, profile = api.pod(), policy_of("Light"), "default-scheduler"
    assert await world.bind(pod, policy=policy, profile=profile) is BindResult.BOUND
    assert await world.bind(pod, policy=policy, profile=profile) is BindResult.ALREADY_BOUND
    await world.binder.drain()
    assert trace.count("light is bound") == 1


async def test_plugins_are_called_after_a_bind_that_was_unknown_and_is_found_done(
    world: World, api: Api, trace: list[str]
) -> None:
    pod, policy = api.pod(), policy_of("Volume")
    posts = api.count(*BINDINGS, done=True, delay_seconds=30)
    first = world.begin(pod, policy=policy, seconds=1.0)
    await until(lambda: posts() == 1)
    api.fault(*READS, status=500)
    assert "is not known to be bound" in str(await refused(first))
    assert "volume in use by default-scheduler" not in trace
    assert await world.bind(pod, policy=policy) is BindResult.BOUND
    await world.binder.drain()
    assert posts() == 1
    assert trace[-1] == "volume in use by default-scheduler"
    assert trace.count("volume of 1 for web on node-a") == 1


async def test_the_profile_is_the_pods_own_if_the_caller_names_none(
    world: World, api: Api, trace: list[str]
) -> None:
    for scheduler in ("batch", "other"):
        pod = api.pod(scheduler, schedulerName=scheduler)
        await world.bind(pod, policy=policy_of("Volume", profile="batch"))
    await world.binder.drain()
    assert trace == ["Volume starts", "volume of 1 for batch on node-a", "volume in use by batch"]


async def test_plugins_wait_outside_of_the_slots_for_the_api_server(
    client: KubeClient, api: Api, trace: list[str]
) -> None:
    world = World(client, plugins=PLUGINS, concurrency=1)
    slow = world.begin(api.pod("slow"), policy=policy_of("Waits"), seconds=2.0)
    await until(lambda: "waits" in trace)
    assert await world.bind(api.pod(), seconds=2.0) is BindResult.BOUND
    slow.cancel()


async def test_plugins_start_once_for_a_policy_and_stop_with_the_next(
    world: World, api: Api, trace: list[str]
) -> None:
    policy = policy_of("Volume")
    for name in ("a", "b"):
        await world.bind(api.pod(name), policy=policy)
    await world.binder.drain()
    assert trace.count("Volume starts") == 1
    assert "Volume stops" not in trace
    await world.bind(api.pod("c"), policy=policy_of("Volume", args={"size": 2}))
    await world.binder.drain()
    assert trace.count("Volume stops") == 1
    assert "volume of 2 for c on node-a" in trace


@pytest.mark.parametrize(
    ("plugins", "args", "problem"),
    [
        (("Nowhere",), {}, "this replica has no plugin 'Nowhere'"),
        (("Volume",), {"size": 0}, "args.size: expected int >= 1, got int 0"),
        (("Broken",), {}, "plugin Broken of profile default-scheduler does not start: OSError"),
    ],
)
async def test_a_policy_that_cannot_be_used_refuses_the_bind(
    world: World, api: Api, plugins: tuple[str, ...], args: dict[str, int], problem: str
) -> None:
    error = await refused(
        world.bind(api.pod(), policy=policy_of(*plugins, args=args, path="policy.yaml:7: args"))
    )
    assert error.reason is BindReason.POLICY
    assert "was not bound: the binder cannot use the policy: " in str(error)
    assert problem in str(error)


async def test_a_policy_that_cannot_be_used_is_not_tried_by_every_bind(
    world: World, api: Api, trace: list[str]
) -> None:
    for name in ("a", "b"):
        error = await refused(world.bind(api.pod(name), policy=policy_of("Broken")))
        assert "no such bus" in str(error)
    assert trace == ["tries to start"]
    assert await world.bind(api.read_pod("a"), policy=policy_of("Volume")) is BindResult.BOUND
