"""Binds that wait for others before anything is written."""

import asyncio
import re
from collections.abc import Callable
from typing import ClassVar

import pytest

from moorage import Allow, Binding, BindPlugin, PluginFailedError, Refusal, Wait
from moorage.testing import make_binding, make_pod, run_permit
from moorage_host.kube import KubeClient
from services.binder.binding.outcomes import BindError, BindReason, BindResult
from services.binder.binding.policies import PolicyText
from tools.inprocess.api import Api, Object
from tools.inprocess.binder import World, policy_of, refused
from tools.waiting import until


class Gang(BindPlugin):
    """Binds the pods of a gang once so many have come as the label `size` says."""

    asked: ClassVar[list[tuple[str, int]]] = []

    def permit_key(self, binding: Binding) -> str:
        return binding.pod.labels.get("gang", "")

    async def permit(self, binding: Binding) -> Allow | Wait | Refusal:
        self.asked.append((binding.name, len(binding.arrived)))
        labels = binding.pod.labels
        if labels.get("refused") and len(binding.arrived) > 1:
            return Refusal("the gang does not want it")
        missing = int(labels.get("size", "1")) - len(binding.arrived)
        if missing <= 0:
            return Allow()
        return Wait(float(labels.get("seconds", "30")), f"{missing} more of {labels['gang']}")


class Slow(BindPlugin):
    """Takes its time before the write."""

    begun: ClassVar[list[str]] = []
    release: ClassVar[asyncio.Event]

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        self.begun.append(binding.name)
        await self.release.wait()
        return Refusal("not now") if "unready" in binding.pod.labels else None


GANG = policy_of("Gang")


@pytest.fixture(autouse=True)
def clean() -> None:
    Gang.asked.clear()
    Slow.begun.clear()
    Slow.release = asyncio.Event()


@pytest.fixture
def world(client: KubeClient) -> World:
    return World(client, plugins=(Gang, Slow), permit_reserve=0.2)


def member(api: Api, name: str, size: int, **labels: str) -> Object:
    return api.pod(name, labels={"gang": "train", "size": str(size), **labels})


def waiting(world: World, count: int) -> Callable[[], bool]:
    return lambda: world.observed.now_waiting == count


async def test_nobody_is_bound_before_the_last_has_come_and_then_all_are(
    client: KubeClient, api: Api
) -> None:
    world = World(client, plugins=(Gang,), concurrency=1, max_waiting=4)  # they take no place
    binds = [world.begin(member(api, f"p{number}", 5), policy=GANG) for number in range(4)]
    await until(waiting(world, 4))
    assert not any(api.node_of(f"p{number}") for number in range(4))
    assert await world.bind(api.pod("alone")) is BindResult.BOUND
    assert await world.bind(member(api, "p4", 5), policy=GANG) is BindResult.BOUND
    assert await asyncio.gather(*binds) == [BindResult.BOUND] * 4
    assert world.observed.waits == ["allowed"] * 4
    assert world.observed.now_waiting == 0
    assert [count for _, count in Gang.asked[-4:]] == [5] * 4


async def test_time_that_runs_out_is_a_refusal_that_names_what_was_awaited(
    world: World, api: Api
) -> None:
    first = world.begin(member(api, "first", 3, seconds="0.3"), policy=GANG)
    await until(waiting(world, 1))
    second = world.begin(member(api, "second", 3), policy=GANG)
    error = await refused(first)
    assert error.reason is BindReason.PERMIT_TIMEOUT
    said = re.fullmatch(
        r"pod default/first was not bound: plugin Gang: waited (\d\.\d) s for 1 more of train; "
        "1 other had come",
        str(error),
    )
    assert said
    assert 0.3 <= float(said[1]) < 5  # a busy machine may wake it late
    assert api.node_of("first") is None
    # The one that gave up does not count any more.
    third = world.begin(member(api, "third", 3), policy=GANG)
    await until(waiting(world, 2))
    assert await world.bind(api.read_pod("first"), policy=GANG) is BindResult.BOUND
    assert {await second, await third} == {BindResult.BOUND}
    assert world.observed.waits[0] == "timeout"


async def test_a_wait_leaves_time_for_the_write(world: World, api: Api) -> None:
    error = await refused(world.bind(member(api, "p", 2), policy=GANG, seconds=1.0))
    assert error.reason is BindReason.PERMIT_TIMEOUT
    reason = (
        r"waited 0\.\d s \(Wait\(30\) was cut, see httpTimeout\) for 1 more of train; no others"
    )
    assert re.search(reason, str(error))


async def test_one_that_waits_is_asked_again_when_another_comes_that_waits_too(
    world: World, api: Api
) -> None:
    first = world.begin(member(api, "first", 2), policy=GANG)
    await until(waiting(world, 1))
    second = world.begin(member(api, "second", 9, seconds="0.3"), policy=GANG)
    assert await first is BindResult.BOUND
    assert (await refused(second)).reason is BindReason.PERMIT_TIMEOUT


async def test_a_refusal_while_it_waits_ends_only_that_bind(world: World, api: Api) -> None:
    unwanted = world.begin(member(api, "unwanted", 3, refused="yes"), policy=GANG)
    await until(waiting(world, 1))
    other = world.begin(member(api, "other", 3, seconds="0.5"), policy=GANG)
    error = await refused(unwanted)
    assert error.reason is BindReason.REFUSED
    assert str(error).endswith("was not bound: plugin Gang: the gang does not want it")
    assert (await refused(other)).reason is BindReason.PERMIT_TIMEOUT
    assert world.observed.waits == ["refused", "timeout"]


async def test_too_many_that_wait_are_refused(client: KubeClient, api: Api) -> None:
    world = World(client, plugins=(Gang,), max_permit_waiting=1)
    first = world.begin(member(api, "first", 3, seconds="0.5"), policy=GANG)
    await until(waiting(world, 1))
    error = await refused(world.begin(member(api, "second", 3), policy=GANG))
    assert error.reason is BindReason.OVERLOADED
    assert "1 binds wait for others already" in str(error)
    await refused(first)


async def test_a_binder_that_ends_sends_those_that_wait_elsewhere(world: World, api: Api) -> None:
    waits = world.begin(member(api, "p", 2), policy=GANG)
    await until(waiting(world, 1))
    world.binder.end_waiting()
    error = await refused(waits)
    assert error.reason is BindReason.UNAVAILABLE  # the gateway repeats these
    assert str(error).endswith("it waited for 1 more of train, and the binder ends; try again")
    late = await refused(world.begin(member(api, "q", 2), policy=GANG))
    assert late.reason is BindReason.UNAVAILABLE
    assert world.observed.waits == ["ended", "ended"]


async def test_plugins_before_the_bind_run_once_all_have_come(world: World, api: Api) -> None:
    policy = policy_of("Slow", "Gang")
    first = world.begin(member(api, "first", 2), policy=policy)
    await until(waiting(world, 1))
    assert Slow.begun == []
    second = world.begin(member(api, "second", 2), policy=policy)
    await until(lambda: sorted(Slow.begun) == ["first", "second"])
    Slow.release.set()
    assert {await first, await second} == {BindResult.BOUND}


async def begin_together(
    world: World, *pods: Object, policy: PolicyText
) -> list["asyncio.Task[BindResult]"]:
    """Have pods bound one after another; return once all are where `Slow` holds them."""
    *others, last = pods
    binds: list[asyncio.Task[BindResult]] = []
    for pod in others:
        binds.append(world.begin(pod, policy=policy))
        await until(waiting(world, len(binds)))
    binds.append(world.begin(last, policy=policy))
    await until(lambda: len(Slow.begun) == len(pods))
    return binds


async def test_of_those_that_go_on_together_none_is_bound_if_one_cannot_be(
    world: World, api: Api
) -> None:
    pods = member(api, "first", 2), member(api, "second", 2)
    first, second = await begin_together(world, *pods, policy=policy_of("Gang", "Slow"))
    api.delete("/api/v1/namespaces/default/pods/second")
    Slow.release.set()
    gone, kept_back = await refused(second), await refused(first)
    assert gone.reason is BindReason.NOT_FOUND
    assert kept_back.reason is BindReason.GROUP
    assert str(kept_back) == f"pod default/first was not bound, as all or none are: {gone}"
    assert api.node_of("first") is None
    assert {post.partition(" (")[2] for post in world.cluster.posts} == {"dry run)"}
    assert world.observed.together_ends == ["given-up"]
    # Once another has come, both are bound.
    Slow.begun.clear()
    again = api.read_pod("first"), member(api, "third", 2)
    binds = await begin_together(world, *again, policy=policy_of("Gang", "Slow"))
    assert await asyncio.gather(*binds) == [BindResult.BOUND] * 2
    assert world.observed.together_ends[1:] == ["bound"] * 2


async def test_a_plugin_that_refuses_one_before_the_write_keeps_the_others_back(
    world: World, api: Api
) -> None:
    pods = member(api, "first", 2), member(api, "second", 2, unready="yes")
    first, second = await begin_together(world, *pods, policy=policy_of("Gang", "Slow"))
    Slow.release.set()
    assert (await refused(second)).reason is BindReason.REFUSED
    assert str(await refused(first)).endswith("plugin Slow: not now")
    assert "first to node-a" not in world.cluster.posts


async def test_the_others_go_on_where_the_plugin_has_enough_without_the_one_that_fails(
    world: World, api: Api
) -> None:
    pods = member(api, "first", 2), member(api, "second", 2)
    policy = policy_of("Gang", "Slow")
    first, second = await begin_together(world, *pods, policy=policy)
    third = world.begin(member(api, "third", 2), policy=policy)
    await until(lambda: "third" in Slow.begun)
    api.delete("/api/v1/namespaces/default/pods/second")
    Slow.release.set()
    assert (await refused(second)).reason is BindReason.NOT_FOUND
    assert {await first, await third} == {BindResult.BOUND}


async def test_one_that_never_gets_ready_ends_the_others_before_anything_is_written(
    world: World, api: Api
) -> None:
    policy = policy_of("Gang", "Slow")
    first = world.begin(member(api, "first", 2), policy=policy)
    await until(waiting(world, 1))
    brief = world.begin(member(api, "brief", 2), policy=policy, seconds=1.0)
    assert (await refused(brief)).reason is BindReason.PLUGIN_FAILED
    Slow.release.set()
    assert (await refused(first)).reason is BindReason.GROUP
    assert api.node_of("first") is api.node_of("brief") is None


async def test_a_plugin_that_fails_may_be_ignored(client: KubeClient, api: Api) -> None:
    class Breaks(BindPlugin):
        """Fails."""

        async def permit(self, binding: Binding) -> Allow:
            raise ValueError("no list of gangs")

    world = World(client, plugins=(Breaks,))
    with pytest.raises(BindError, match="failed in permit: ValueError: no list of gangs") as caught:
        await world.bind(api.pod("p"), policy=policy_of("Breaks"))
    assert caught.value.reason is BindReason.PLUGIN_FAILED
    ignored = policy_of("Breaks", failure_policy="Ignore")
    assert await world.bind(api.read_pod("p"), policy=ignored) is BindResult.BOUND


NOBODY = 'permit returned Wait, but permit_key is "", so nobody can come: '


@pytest.mark.parametrize(
    ("answer", "has_keys", "problem"),
    [
        (Wait(1), False, f"{NOBODY}override permit_key"),
        (Wait(1), True, f"{NOBODY}return one for each pod that may wait"),
        (
            *(None, False),
            r"permit must return Allow\(\), Wait\(...\) or Refusal\(...\), not NoneType",
        ),
        (Wait(float("nan")), False, r"permit returned Wait\(nan\), which is no time"),
        (Wait("1"), False, r"permit must return Wait\(seconds\) with a number, not str"),  # type: ignore[arg-type]
        (Refusal(1), False, "permit must return text as the reason, not int"),  # type: ignore[arg-type]
    ],
)
def test_wrong_answers_are_failures(answer: object, has_keys: bool, problem: str) -> None:
    class Wrong(BindPlugin):
        """Answers wrongly."""

        async def permit(self, binding: Binding) -> Allow:
            return answer  # type: ignore[return-value]

    class NoKeyForSome(Wrong):
        """Has no key for this pod."""

        def permit_key(self, binding: Binding) -> str:
            return binding.pod.labels.get("gang", "")

    with pytest.raises(PluginFailedError, match=problem):
        run_permit(NoKeyForSome() if has_keys else Wrong(), make_binding(make_pod("p"), "n1"))
