"""Shadows on a gateway in this process: when they run, on which state, what they leave alone."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.up.processes import free_ports
from gateway.whatif.shadow_tally import Budget
from moorage import Node, Pod, ScorePlugin
from tests.forked import forked
from tests.stack.plugins.culprit import Culprit
from tools.inprocess.api import Object
from tools.inprocess.gateway import (
    Gate,
    Gateway,
    Held,
    Options,
    filter_service,
    is_open,
    plane,
    pod,
    scorer_service,
)
from tools.waiting import until

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins:
    filter: {enabled: [{name: NodeResourcesFit}]}
    score: {enabled: [{name: NodeResourcesLeastAllocated}, {name: Odd}]}
  shadow: SHADOW
"""
ALWAYS = "{maxShare: 100%}"
CULPRIT = inspect.getfile(Culprit)
"""Ends the process in which it is asked about a pod with the label `ends-filter`."""


class Odd(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        if pod.name == "odd":
            raise RuntimeError("odd")
        return 0


def running(
    folder: Path, *, shadow: str = ALWAYS, scorer_gate: Gate = is_open, **more: Any
) -> AbstractAsyncContextManager[Gateway]:
    policy = POLICY.replace("SHADOW", shadow)
    options: Options = {
        "policy": policy,
        "nodes": ("n1", "n2"),
        "scorer_gates": (scorer_gate,),
        **more,
    }
    return plane(folder, Odd, **options)


class Asked:
    """A gate that notes which profiles a replica runs and is asked about."""

    def __init__(self) -> None:
        self.profiles: set[str] = set()
        self.policies: list[Object] = []

    async def __call__(self, request: Any) -> bool:
        if request.HasField("cycle"):
            self.profiles.add(request.cycle.profile)
        if request.HasField("state") and request.state.policy.json:
            self.policies.append(json.loads(request.state.policy.json))
        return True


@asynccontextmanager
async def with_their_own(
    folder: Path, live: Asked, own: Gate, **more: Any
) -> AsyncIterator[Gateway]:
    """Run a gateway whose shadows have a filter and a scorer replica of their own."""
    async with (
        filter_service(gate=own) as filters,
        scorer_service(Odd, gate=own) as scorer,
        running(
            folder,
            filter_gates=(live,),
            scorer_gate=live,
            shadow_filter=(filters,),
            shadow_scorer=(scorer,),
            **more,
        ) as process,
    ):
        await _shadows_are_ready(process)
        yield process


async def _shadows_are_ready(process: Gateway) -> None:
    names = "shadow-filter", "shadow-scorer"
    await until(
        lambda: all(process.sample("moorage_replicas_ready", service=name) == 1 for name in names)
    )


async def report(process: Gateway) -> Object:
    status, answer = await process.get("/shadow")
    assert status == 200
    (found,) = answer["profiles"]
    return dict(found)


async def ended(process: Gateway, cycles: int = 1) -> Object:
    """Wait until so many cycles were compared, skipped or failed; return the report."""
    async with asyncio.timeout(20):
        while True:
            found = await report(process)
            if found["compared"] + found["failed"] + sum(found["skipped"].values()) >= cycles:
                return found
            await asyncio.sleep(0.01)


def place(process: Gateway, name: str) -> None:
    """Let a pod appear on a node: a change of the state."""
    process.api.pod(name, nodeName="n1")


async def test_a_shadow_looks_at_the_state_of_the_live_cycle(tmp_path: Path) -> None:
    scores, seen = Held("moorage"), Held("moorage/shadow")
    seen.opened.set()
    async with running(
        tmp_path, filter_gates=(seen,), scorer_gate=scores, delta_interval=60.0
    ) as process:
        await process.filter(pod(), "n1", "n2")
        await until(lambda: bool(scores.came))
        place(process, "later")
        await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
        scores.opened.set()
        found = await ended(process)
        assert found["compared"] == 1, found
        assert found["agreement"] == 1
        (request,) = seen.came
        assert not request.HasField("state")
        # The next cycle brings the change along.
        await process.filter(pod("next"), "n1", "n2")
        found = await ended(process, 2)
        assert found["agreement"] == 1


async def test_a_cycle_whose_state_is_gone_is_not_compared(tmp_path: Path) -> None:
    scores = Held("moorage")
    async with running(tmp_path, scorer_gate=scores, delta_interval=0.001) as process:

        def sent() -> float:
            return process.sample(
                "moorage_session_sent_bytes_total", service="filter", part="delta"
            )

        await process.filter(pod(), "n1", "n2")
        before = sent()
        await until(lambda: bool(scores.came))
        place(process, "later")
        await until(lambda: sent() > before)
        scores.opened.set()
        found = await ended(process)
        assert found["skipped"]["changed"] == 1, found
        assert found["compared"] == 0


async def test_a_cycle_that_comes_meanwhile_goes_to_a_replica_that_idles(tmp_path: Path) -> None:
    gates = Held("moorage/shadow"), Held("moorage/shadow")
    async with running(tmp_path, filter_gates=gates, shadow_timeout=30.0) as process:
        await process.filter(pod("first"), "n1")
        await until(lambda: any(gate.came for gate in gates))
        answer = await process.filter(pod("second"), "n1")
        assert answer["NodeNames"] == ["n1"]
        found = await report(process)
        assert found["skipped"]["busy"] == 1
        for gate in gates:
            gate.opened.set()
        found = await ended(process, 2)
        assert found["compared"] == 1


async def test_a_replica_that_keeps_a_shadow_waiting_is_not_given_up(tmp_path: Path) -> None:
    gate = Held("moorage/shadow")
    async with running(tmp_path, filter_gates=(gate,), shadow_timeout=0.05) as process:
        await process.filter(pod("first"), "n1")
        found = await ended(process)
        assert found["failed"] == 1, found
        assert found["lastFailure"] == "the filter service does not answer in time"
        assert found["stopped"], "it took the replica from live cycles"
        assert process.sample("moorage_replicas_ready", service="filter") == 1
        gate.opened.set()
        assert (await process.filter(pod("second"), "n1"))["NodeNames"] == ["n1"]
        assert (await ended(process, 2))["skipped"]["stopped"] == 1
        async with process.session.get(f"{process.admin}/readyz") as response:
            assert "stopped after a failure, see /shadow: moorage" in await response.text()
        assert process.sample("moorage_replicas_ready", service="filter") == 1
        assert (
            process.sample("moorage_shadow_cycles_total", profile="moorage", outcome="failed")
            == (await ended(process, 2))["failed"]
        )


async def test_a_cycle_without_a_live_plugin_that_failed_is_not_compared(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        assert await process.prioritize(pod("odd"), "n1", "n2")
        found = await ended(process)
        assert found["skipped"]["live failed"] == 1, found


async def test_a_shadow_claims_nothing_and_is_no_decision(tmp_path: Path) -> None:
    shadow = """
    plugins: {filter: {enabled: [{name: OneNodePerPipelineRun}]}}
    pluginConfig: [{name: OneNodePerPipelineRun, args: {isolationStrategy: isolateAlways}}]
    maxShare: 100%"""
    async with running(tmp_path, shadow=shadow) as process:
        task = process.api.pod(
            "task", labels={"tekton.dev/pipelineRun": "a"}, schedulerName="moorage"
        )
        answer = await process.filter(task, "n1", "n2")
        assert answer["NodeNames"] == ["n1", "n2"]
        found = await ended(process)
        assert found["compared"] == 1, found
        assert process.sample("moorage_claims_total") == 0
        status, decisions = await process.get("/decisions/default/task")
        assert status == 200
        (attempt,) = decisions["attempts"]
        assert {p["plugin"] for p in attempt["filter"]["plugins"]} == {"NodeResourcesFit"}
        samples = {
            sample.labels["plugin"]
            for family in process.registry.collect()
            for sample in family.samples
            if family.name == "moorage_plugin_execution_duration_seconds"
        }
        assert "OneNodePerPipelineRun" not in samples


@pytest.mark.parametrize("verb", ["filter/NodeResourcesFit", "preempt"])
async def test_calls_that_are_no_cycle_of_the_profile_are_not_compared(
    tmp_path: Path, verb: str
) -> None:
    async with running(tmp_path) as process:
        victims = {"n1": {"Pods": [], "NumPDBViolations": 0}}
        body = {"Pod": pod(), "NodeNames": ["n1"], "NodeNameToVictims": victims}
        status, _ = await process.call(verb, body)
        assert status == 200
        found = await report(process)
        assert (found["compared"], sum(found["skipped"].values())) == (0, 0)
        assert found["agreement"] is None


async def test_replicas_of_their_own_run_shadows_and_nothing_else(tmp_path: Path) -> None:
    live, own = Asked(), Asked()
    async with with_their_own(tmp_path, live, own) as process:
        await process.filter(pod(), "n1", "n2")
        found = await ended(process)
        assert (found["compared"], found["agreement"]) == (1, 1), found
        place(process, "later")
        await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
        await process.filter(pod("next"), "n1", "n2")
        found = await ended(process, 2)
        assert found["compared"] == 2, str(found)
    assert (live.profiles, own.profiles) == ({"moorage"}, {"moorage/shadow"})
    assert not any(policy["shadows"] for policy in live.policies)
    assert not any(policy["profiles"] for policy in own.policies)


async def test_a_shadow_that_never_answers_on_its_own_replica_holds_up_no_cycle(
    tmp_path: Path,
) -> None:
    held = Held("moorage/shadow")
    async with with_their_own(tmp_path, Asked(), held, shadow_timeout=30.0) as process:
        await process.filter(pod("first"), "n1", "n2")
        await until(lambda: bool(held.came))
        for i in range(3):
            answer = await process.filter(pod(f"more-{i}"), "n1", "n2")
            assert answer["NodeNames"] == ["n1", "n2"]
        assert (await ended(process, 3))["skipped"]["busy"] == 3
        held.opened.set()


async def test_replicas_of_shadows_follow_a_new_policy_which_does_not_wait_for_them(
    tmp_path: Path,
) -> None:
    own = Asked()
    async with with_their_own(tmp_path, Asked(), own, config_reload_interval=0.01) as process:
        await process.filter(pod("before"), "n1", "n2")
        before = await ended(process)
        shadow = "{plugins: {score: {enabled: [{name: Equal, weight: 3}]}}, maxShare: 100%}"
        (tmp_path / "policy.yaml").write_text(POLICY.replace("SHADOW", shadow))
        await until(lambda: process.sample("moorage_policy_reloads_total", outcome="ok") == 1)
        await until(lambda: "Equal" in json.dumps(own.policies))
        await _shadows_are_ready(process)
        found = await report(process)
        assert (before["compared"], found["compared"]) == (1, 0), "the counts are new"
        assert found["policyRevision"] != before["policyRevision"]
        await process.filter(pod(), "n1", "n2")
        assert (await ended(process))["compared"] == 1


async def test_a_shadow_that_ends_its_replica_s_process_stops_and_live_replicas_stay(
    tmp_path: Path,
) -> None:
    shadow = "{plugins: {filter: {enabled: [{name: Culprit}]}}, maxShare: 100%}"
    options = ("--host=127.0.0.1", "--port=0", "--admin-host=127.0.0.1", "--admin-port=0")
    async with (
        forked("services.filter", *options, f"--plugin={CULPRIT}") as own,
        filter_service(Culprit) as live,
        running(
            tmp_path,
            shadow=shadow,
            filters=(live,),
            shadow_filter=((await own.event())["grpc"],),
        ) as process,
    ):

        def ready(service: str) -> float:
            return process.sample("moorage_replicas_ready", service=service)

        await until(lambda: ready("shadow-filter"))
        ending = process.api.pod("p", labels={"ends-filter": ""}, schedulerName="moorage")
        assert (await process.filter(ending, "n1", "n2"))["NodeNames"] == ["n1", "n2"]
        found = await ended(process)
        assert (found["failed"], found["stopped"]) == (1, True), found
        assert found["lastFailure"] == "a shadow-filter replica is lost"
        assert (await own.ended())[0] != 0
        await until(lambda: not ready("shadow-filter"))
        assert (ready("filter"), ready("scorer")) == (1, 1)
        assert (await process.filter(pod("next"), "n1", "n2"))["NodeNames"] == ["n1", "n2"]
        assert (await ended(process, 2))["skipped"]["stopped"] == 1


async def test_a_pod_that_was_asked_about_beside_a_shadow_is_not_suspected(tmp_path: Path) -> None:
    shadows, held = Held("moorage/shadow"), Held()
    first, second = free_ports(2)
    addresses = f"127.0.0.1:{first}", f"127.0.0.1:{second}"
    settings: Options = {"http_timeout": 1.0, "hedge_floor": 0.1, "shadow_timeout": 30.0}
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(
            running(tmp_path, filters=addresses, waits=False, **settings)
        )

        async def both_are_asked() -> bool:
            _, answer = await process.get("/replicas")
            (replica,) = answer["services"][0]["replicas"]
            return bool(replica["unanswered"] == 2)

        async def is_ready(count: int) -> None:
            await until(lambda: process.sample("moorage_replicas_ready", service="filter") == count)

        async with filter_service(port=first, gate=shadows):
            await is_ready(1)
            await until(lambda: process.sample("moorage_replicas_ready", service="scorer") == 1)
            await process.filter(pod("first"), "n1", "n2")
            await until(lambda: bool(shadows.came))
            call = asyncio.create_task(process.filter(pod("innocent"), "n1", "n2"))
            await until(both_are_asked)
        await stack.enter_async_context(filter_service(port=first, gate=held))  # another process
        await call
        await stack.enter_async_context(filter_service(port=second, gate=held))
        await is_ready(2)
        held.came.clear()
        await process.filter(pod("innocent"), "n1", "n2")
        assert len(held.came) == 2, "a pod that may have ended a replica is asked of one only"


async def test_readiness_says_that_a_shadow_has_no_replica(tmp_path: Path) -> None:
    async with (
        running(tmp_path, shadow_filter=("127.0.0.1:1",)) as process,
        process.session.get(f"{process.admin}/readyz") as response,
    ):
        assert response.status == 200
        assert "shadow-filter" in await response.text()


@pytest.mark.parametrize("seconds", [0.002, 0.05, 3.0])
def test_the_share_is_kept_whatever_a_run_takes(seconds: float) -> None:
    now, runs = 100.0, 0
    budget = Budget(0.1, lambda: now)
    while now < 200:
        if budget.allows:
            budget.spend(seconds)
            now += seconds
            runs += 1
        now += 0.001
    assert budget.used <= 0.1 + (seconds + 0.1) / 100
    assert budget.used > 0.09
    assert budget.spent == pytest.approx(runs * seconds)


def test_what_a_quiet_time_saves_is_bounded() -> None:
    now, spent = 100.0, 0.0
    budget, none = Budget(0.1, lambda: now), Budget(0.0, lambda: now)
    now += 3600
    assert not none.allows
    while budget.allows:
        budget.spend(0.01)
        spent += 0.01
    assert spent == pytest.approx(0.1, abs=0.011)
