"""The policy file is followed: a right content comes into force between cycles, a wrong one not."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cli.up.processes import free_ports
from moorage import Arguments, FilterPlugin, Node, Nodes, Pod, Rejection, ScorePlugin
from tests.gateway.cluster.test_objects import SETS, Replicated, becomes, stateful_set
from tests.gateway.scheduling.noting import decided
from tools.inprocess.gateway import (
    Gateway,
    Options,
    binder_service,
    filter_service,
    is_open,
    plane,
    pod,
    ready,
    scorer_service,
)
from tools.waiting import until

NODES = ("n1", "n2")


class Only(FilterPlugin):
    class Args(Arguments):
        """Which."""

        node: str = "n1"

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None if node.name == self.args.node else Rejection(f"only {self.args.node}")


class Marked(FilterPlugin):
    class Args(Arguments):
        """The text."""

        mark: str = ""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection(f"mark {self.args.mark}") if node.name == "n3" else None


class Fixed(ScorePlugin):
    class Args(Arguments):
        """How many, and on which node."""

        points: float = 0
        node: str = "n1"

    def score_node(self, pod: Pod, node: Node) -> float:
        return self.args.points if node.name == self.args.node else 0


class Unwilling(ScorePlugin):
    async def start(self) -> None:
        raise OSError("no licence")

    def score_node(self, pod: Pod, node: Node) -> float:
        return 1


class Willing(ScorePlugin):
    """The same in another replica, where it starts."""

    name = "Unwilling"
    stopped: ClassVar[list[str]] = []

    async def stop(self) -> None:
        self.stopped.append(self.name)

    def score_node(self, pod: Pod, node: Node) -> float:
        return 1


class Held(FilterPlugin):
    entered: ClassVar[asyncio.Event]
    released: ClassVar[asyncio.Event]

    async def prepare(self, pod: Pod, nodes: Nodes) -> None:
        self.entered.set()
        await self.released.wait()

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None


class Announced(Fixed):
    """Says with which arguments it has started."""

    class Args(Fixed.Args):
        """The same."""

    started: ClassVar[set[float]] = set()

    async def start(self) -> None:
        self.started.add(self.args.points)


HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nscoreScale: 100\n"
OFTEN: dict[str, Any] = {"config_reload_interval": 0.02, "resolve_interval": 0.1}


def policy_of(*plugins: str, **args: dict[str, Any]) -> str:
    enabled = ", ".join(f"{{name: {name}}}" for name in plugins)
    configs = ", ".join(
        f"{{name: {name}, args: {value}, timeBudget: 10s}}" for name, value in args.items()
    )
    return (
        HEADER + "profiles:\n- plugins:\n    multiPoint: {enabled: "
        f"[{enabled}], disabled: [{{name: '*'}}]}}\n  pluginConfig: [{configs}]\n"
    )


def only(node: str) -> str:
    return policy_of("Only", Only={"node": node})


@asynccontextmanager
async def running(
    folder: Path,
    text: str,
    *,
    scorers: tuple[type[ScorePlugin], ...] = (Fixed,),
    filters: tuple[type[FilterPlugin], ...] = (Only, Marked, Replicated),
    **more: Any,
) -> AsyncIterator[Gateway]:
    """Run a gateway with one filter, and a scorer for each of *scorers*."""
    async with AsyncExitStack() as stack:
        scorer = [await stack.enter_async_context(scorer_service(kind)) for kind in scorers]
        options: Options = {"policy": text, "nodes": (*NODES, "n3"), "scorer": scorer, **OFTEN}
        yield await stack.enter_async_context(plane(folder, *filters, **options, **more))


async def reloaded(found: Gateway, outcome: str, count: int = 1) -> None:
    await until(lambda: reloads(found, outcome) >= count)


async def rewrite(folder: Path, found: Gateway, text: str, outcome: str, count: int = 1) -> None:
    """Change the file, and wait until so many changes came to this end."""
    (folder / "policy.yaml").write_text(text)
    await reloaded(found, outcome, count)


def reloads(found: Gateway, outcome: str) -> float:
    return found.sample("moorage_policy_reloads_total", outcome=outcome)


async def note(found: Gateway) -> str:
    """Return what a gateway that is ready notes about its policy file."""
    status, answer = await found.get("/readyz")
    assert (status, answer["status"]) == (200, "degraded")
    notes = {each["name"]: each["note"] for each in answer.get("notes", ())}
    return str(notes.get("policy", ""))  # the binder, which is not there, has one too


async def revision(found: Gateway, name: str) -> str:
    _, answer = await found.get(f"/decisions/default/{name}")
    return str(answer["attempts"][0]["policyRevision"])


async def test_a_changed_file_changes_placements_without_a_new_session(tmp_path: Path) -> None:
    async with running(tmp_path, only("n1")) as found:
        assert (await found.filter(pod("a"), *NODES))["NodeNames"] == ["n1"]
        opened = found.sample("moorage_sessions_opened_total", service="filter")
        await rewrite(tmp_path, found, only("n2"), "ok")
        assert (await found.filter(pod("b"), *NODES))["NodeNames"] == ["n2"]
        assert await revision(found, "a") != await revision(found, "b")
        assert found.sample("moorage_sessions_opened_total", service="filter") == opened
        assert await note(found) == ""


async def test_scores_and_their_scale_follow(tmp_path: Path) -> None:
    text = policy_of("Fixed", Fixed={"points": 100})
    async with running(tmp_path, text) as found:
        assert await found.prioritize(pod("a"), *NODES) == [{"Host": "n1", "Score": 100}]
        changed = policy_of("Fixed", Fixed={"points": 100, "node": "n2"})
        await rewrite(tmp_path, found, changed.replace("scoreScale: 100", "scoreScale: 10"), "ok")
        assert await found.prioritize(pod("b"), *NODES) == [{"Host": "n2", "Score": 10}]


async def test_a_symlink_that_is_swapped_as_a_configmap_is_followed(tmp_path: Path) -> None:
    async with running(tmp_path, only("n1")) as found:
        for name in ("..data1", "..data2"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "policy.yaml").write_text(only("n2"))
        (tmp_path / "..data").symlink_to("..data1")
        (tmp_path / "new").symlink_to("..data/policy.yaml")
        (tmp_path / "new").rename(tmp_path / "policy.yaml")
        await reloaded(found, "ok")
        (tmp_path / "..data2" / "policy.yaml").write_text(only("n1"))
        (tmp_path / "..tmp").symlink_to("..data2")
        (tmp_path / "..tmp").rename(tmp_path / "..data")
        await reloaded(found, "ok", 2)
        assert (await found.filter(pod("a"), *NODES))["NodeNames"] == ["n1"]


async def test_a_wrong_content_is_told_once_and_the_old_policy_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.replicas.reload.RETRY_SECONDS", 0.0)
    async with running(tmp_path, only("n1")) as found:
        await rewrite(tmp_path, found, policy_of("Only", Only={"nod": "n2"}), "refused")
        told = await note(found)
        assert "the file is refused and the policy before it stays active" in told
        assert "policy.yaml:7: profiles[0].pluginConfig[0].args" in told
        assert "did you mean `node`?" in told
        await until(lambda: events(found, "PolicyRefused") == [told])
        assert found.sample("moorage_policy_file_refused") == 1
        assert (await found.filter(pod("a"), *NODES))["NodeNames"] == ["n1"]
        await rewrite(tmp_path, found, "profiles: [", "refused", 2)
        (tmp_path / "policy.yaml").unlink()
        await reloaded(found, "refused", 3)
        assert "cannot be read" in await note(found)
        await rewrite(tmp_path, found, only("n1") + "# as before\n", "ok")
        assert await note(found) == ""
        assert found.sample("moorage_policy_file_refused") == 0
        assert (await found.filter(pod("b"), *NODES))["NodeNames"] == ["n1"]
        assert reloads(found, "refused") == 3
    assert capsys.readouterr().out.count("The policy file is refused") == 3


def two_profiles(*names: str) -> str:
    profiles = "".join(
        f"- schedulerName: {name}\n  plugins: {{filter: {{enabled: [{{name: Only}}]}}}}\n"
        for name in names
    )
    return HEADER + "profiles:\n" + profiles


def events(found: Gateway, reason: str) -> list[str]:
    """Return what Events of a reason say about the policy."""
    answer = found.api.server.cluster.target("/apis/events.k8s.io/v1/namespaces/default/events")
    items = found.api.server.cluster.collection(answer.resource).list("default")
    return [item.object["message"] for item in items if item.object["reason"] == reason]


async def test_a_profile_that_pods_lose_is_told_until_it_is_back(tmp_path: Path) -> None:
    async with running(tmp_path, two_profiles("cut", "moorage", "unused")) as found:
        for name in ("a", "b"):
            found.api.pod(name, schedulerName="cut")
        found.api.pod("c", schedulerName="cut", nodeName="n1")
        await until(lambda: found.sample("moorage_cache_size", type="pods") == 1)
        await rewrite(tmp_path, found, two_profiles("moorage"), "ok")  # as if cut
        told = await note(found)
        assert told == (
            "profile cut has gone from the file, or has no plugins any more; 3 pods name it as "
            "their schedulerName, 2 of them wait, and they are placed without Moorage"
        )
        await until(lambda: events(found, "ProfileLost") == [told])
        await rewrite(tmp_path, found, two_profiles("cut"), "ok", 2)
        assert await note(found) == ""


async def test_a_gateway_without_a_usable_policy_takes_the_mended_file(tmp_path: Path) -> None:
    misspelt = only("n1").replace("name: Only}]", "name: Onyl}]")
    options: Options = {"policy": misspelt, "nodes": NODES, "waits": False, **OFTEN}
    async with plane(tmp_path, Only, **options) as found:

        async def is_told() -> bool:
            return "Onyl" in str(await found.get("/readyz"))

        await until(is_told)
        (tmp_path / "policy.yaml").write_text(only("n2"))
        await ready(found)
        assert (await found.filter(pod("a"), *NODES))["NodeNames"] == ["n2"]


async def test_no_cycle_is_lost_and_none_is_half_under_another_policy(tmp_path: Path) -> None:
    def both(mark: int) -> str:
        args: dict[str, dict[str, Any]] = {
            "Marked": {"mark": str(mark)},
            "Fixed": {"points": 10 * mark},
        }
        return policy_of("Marked", "Fixed", **args)

    async with running(tmp_path, both(1), scorers=(Fixed, Fixed)) as found:
        decisions: dict[str, set[tuple[str, str]]] = {}
        done = asyncio.Event()

        async def schedule(number: int) -> None:
            for turn in range(10_000):
                if done.is_set():
                    return
                obj = pod(f"p{number}-{turn}")
                filtered = await found.filter(obj, "n1", "n2", "n3")
                assert filtered["Error"] == ""
                assert filtered["NodeNames"] == ["n1", "n2"]
                await found.prioritize(obj, "n1", "n2")
                attempt = await decided(found, obj["metadata"]["name"])
                mark = filtered["FailedAndUnresolvableNodes"]["n3"]
                top = {each["node"]: each for each in attempt["score"]["top"]}
                raw = top["n1"]["plugins"][0]["raw"]
                assert mark == f"mark {raw / 10:.0f}"
                decisions.setdefault(attempt["policyRevision"], set()).add((mark, str(raw)))

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(schedule(number))
            for change in range(2, 8):
                await rewrite(tmp_path, found, both(change), "ok", change - 1)
            done.set()
        assert len(decisions) >= 4
        assert all(len(seen) == 1 for seen in decisions.values())
        assert found.sample("moorage_replicas_ready", service="scorer") == 2


async def test_a_cycle_that_has_begun_ends_under_its_policy(tmp_path: Path) -> None:
    Held.entered, Held.released = asyncio.Event(), asyncio.Event()
    Announced.started.clear()

    def points(number: int) -> str:
        args: dict[str, dict[str, Any]] = {"Announced": {"points": number}, "Held": {}}
        return policy_of("Held", "Announced", **args)

    async with running(tmp_path, points(10), scorers=(Announced,), filters=(Held,)) as found:
        async with asyncio.TaskGroup() as group:
            filtering = group.create_task(found.filter(pod("a"), *NODES))
            await Held.entered.wait()
            (tmp_path / "policy.yaml").write_text(points(20))
            await until(lambda: 20 in Announced.started)
            for _ in range(10):  # enough for the swap, if it did not wait for the cycle
                assert await note(found) == ""
            assert reloads(found, "ok") == 0
            Held.released.set()
        await found.prioritize(pod("a"), *filtering.result()["NodeNames"])
        await reloaded(found, "ok")
        attempt = await decided(found, "a")
        top = {each["node"]: each for each in attempt["score"]["top"]}
        assert top["n1"]["plugins"][0]["raw"] == 10
        await found.filter(pod("b"), *NODES)
        assert attempt["policyRevision"] != await revision(found, "b")


async def test_a_policy_that_one_replica_refuses_comes_into_force_nowhere(tmp_path: Path) -> None:
    Willing.stopped.clear()
    text = only("n1")
    wanted = policy_of("Only", "Unwilling", Only={"node": "n2"})
    async with running(tmp_path, text, scorers=(Willing, Unwilling)) as found:
        await rewrite(tmp_path, found, wanted, "refused")
        told = await note(found)
        assert "scorer at 127.0.0.1:" in told
        assert "Unwilling of profile moorage does not start: OSError: no licence" in told
        await until(lambda: Willing.stopped == ["Unwilling"])
        for name in ("a", "b"):
            assert (await found.filter(pod(name), *NODES))["NodeNames"] == ["n1"]
            await found.prioritize(pod(f"{name}-scored"), *NODES)
        assert found.sample("moorage_replicas_ready", service="scorer") == 2
        assert found.sample("moorage_replicas_ready", service="filter") == 1


async def test_a_replica_that_refuses_at_the_last_moment_takes_all_back(tmp_path: Path) -> None:
    spoilt: list[str] = []

    async def spoil(request: Any) -> bool:
        state = request.state
        if state.policy.revision and not state.partial and not spoilt:
            spoilt.append(state.policy.revision)
            state.policy.revision = "spoilt"
            state.policy.json = state.policy.json.replace(b"Only", b"Gone")
        return True

    options: Options = {
        "policy": only("n1"),
        "nodes": NODES,
        "filter_gates": (is_open, spoil),
        **OFTEN,
    }
    async with plane(tmp_path, Only, **options) as found:
        await rewrite(tmp_path, found, only("n2"), "refused")
        assert re.search(r"filter at \S+ refuses it", await note(found))
        for number in range(4):
            assert (await found.filter(pod(f"p{number}"), *NODES))["NodeNames"] == ["n1"]
        assert spoilt


async def test_a_replica_that_joins_meanwhile_gets_the_policy_in_force(tmp_path: Path) -> None:
    arrived, open_ = asyncio.Event(), asyncio.Event()
    policies: list[str] = []

    async def hold(request: Any) -> bool:
        if request.state.policy.revision:
            policies.append(request.state.policy.revision)
        arrived.set()
        await open_.wait()
        return True

    gates: Options = {"filter_gates": (is_open, hold), "waits": False}
    async with plane(tmp_path, Only, policy=only("n1"), nodes=NODES, **gates, **OFTEN) as found:
        await arrived.wait()
        await rewrite(tmp_path, found, only("n2"), "ok")
        open_.set()
        await until(lambda: found.sample("moorage_replicas_ready", service="filter") == 2)
        for number in range(4):
            assert (await found.filter(pod(f"p{number}"), *NODES))["NodeNames"] == ["n2"]
        assert found.sample("moorage_sessions_opened_total", service="filter") == 2
        assert len(set(policies)) == 2


async def test_a_refused_policy_is_tried_again_when_replicas_have_other_plugins(
    tmp_path: Path,
) -> None:
    port, config = free_ports(1)[0], tmp_path / "policy.yaml"
    options: Options = {"filters": f"127.0.0.1:{port}", "nodes": NODES, "waits": False, **OFTEN}
    async with plane(tmp_path, Fixed, policy=policy_of("Fixed"), **options) as found:
        async with filter_service(port=port):
            await ready(found)
            config.write_text(only("n2"))
            await reloaded(found, "refused")
        async with filter_service(Only, port=port):
            await reloaded(found, "ok")
            assert (await found.filter(pod("a"), *NODES))["NodeNames"] == ["n2"]


async def test_objects_that_the_new_policy_reads_are_there_when_it_comes(tmp_path: Path) -> None:
    with_objects = policy_of("Replicated")
    async with running(tmp_path, only("n1")) as found:
        for number in range(300):
            found.api.create(SETS, stateful_set(f"db{number}"))
        await rewrite(tmp_path, found, with_objects, "ok")
        for name in ("db0", "db299"):
            assert (await found.filter(pod(name), "n1"))["NodeNames"] == ["n1"]
        assert (await found.filter(pod("other"), "n1"))["NodeNames"] == []
        found.api.create(SETS, stateful_set("late"))
        await becomes(found, "late", "")
        await rewrite(tmp_path, found, only("n1"), "ok", 2)
        assert (await found.filter(pod("x"), "n1"))["NodeNames"] == ["n1"]
        await until(lambda: "statefulsets.apps" not in sizes(found))
        found.api.delete(f"{SETS}/db0")
        await rewrite(tmp_path, found, with_objects, "ok", 3)
        assert (await found.filter(pod("db0"), "n1"))["NodeNames"] == []
        assert (await found.filter(pod("db1"), "n1"))["NodeNames"] == ["n1"]


def sizes(found: Gateway) -> set[str]:
    return {
        sample.labels["type"]
        for family in found.registry.collect()
        for sample in family.samples
        if sample.name == "moorage_cache_size"
    }


async def test_objects_that_may_not_be_read_leave_the_old_policy_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.replicas.reload.SYNC_SECONDS", 0.3)
    monkeypatch.setattr("gateway.replicas.reload.RETRY_SECONDS", 0.1)
    async with running(tmp_path, only("n1")) as found:
        found.api.count("*", "statefulsets", status=403)
        await rewrite(tmp_path, found, policy_of("Replicated"), "refused")
        told = await note(found)
        assert "its plugins read what is not there: statefulsets.apps: not read yet" in told
        assert "API server answered 403" in told
        assert (await found.filter(pod("a"), *NODES))["NodeNames"] == ["n1"]
        found.api.faults.clear()
        await reloaded(found, "ok")
        assert (await found.filter(pod("b"), *NODES))["NodeNames"] == []


async def test_bind_plugins_follow(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    noted = HEADER + "profiles: [{plugins: {bind: {enabled: [{name: DecisionAnnotation}]}}}]\n"
    async with (
        running(tmp_path, HEADER, binder=f"127.0.0.1:{port}") as found,
        binder_service(tmp_path, port=port),
    ):
        for name, has_note in (("before", False), ("after", True)):
            obj = found.api.pod(name, schedulerName="moorage")
            body = {
                "PodName": name,
                "PodNamespace": obj["metadata"]["namespace"],
                "PodUID": obj["metadata"]["uid"],
                "Node": "n1",
            }
            await found.filter(obj, "n1")
            _, answer = await found.call("bind", body)
            assert answer["Error"] == ""
            annotations = found.api.read_pod(name)["metadata"].get("annotations", {})
            assert ("moorage.io/decision" in annotations) == has_note
            await rewrite(tmp_path, found, noted, "ok")
