"""The scheduler's configuration, and the scheduler as a process of its own."""

import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.up.processes import free_ports
from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import (
    KubeSchedulerConfiguration,
    load_configuration,
    parse_configuration,
)
from tests.forked import forked
from tests.sandbox.scheduler.support import World
from tools.waiting import until

MODULE = "sandbox.scheduler"
CONFIG = Path(__file__).parents[3] / "deploy/files/kube-scheduler-config.yaml"


async def test_the_deployed_configuration_runs_against_the_sandbox_from_any_folder(
    world: World, tmp_path: Path
) -> None:
    world.node("a")
    world.pod("web")
    options = (f"--api-server={world.server.url}", f"--extender-url={world.extender.url}")
    async with forked(MODULE, *options, "--seed=1", directory=tmp_path) as scheduler:
        assert await scheduler.event() == {
            "event": "running",
            "apiServer": world.server.url,
            "schedulerNames": ["moorage"],
            "nodes": 1,
            "pods": 1,
        }
        await until(world.placed("web"))
        scheduler.process.send_signal(signal.SIGTERM)
        assert await scheduler.process.wait() == 0
    assert world.extender.verbs("web") == ["filter"]
    assert [event["reason"] for event in world.events("web")] == ["Scheduled"]


async def test_the_clusters_own_scheduler_places_pods_without_the_extender(world: World) -> None:
    world.node("a")
    world.pod("ours")
    world.pod("theirs", schedulerName="default-scheduler")
    (port,) = free_ports(1)
    options = (
        f"--config={CONFIG}",
        f"--api-server={world.server.url}",
        f"--extender-url={world.extender.url}",
        "--default-scheduler",
        f"--decisions-port={port}",
    )
    async with forked(MODULE, *options) as scheduler:
        assert (await scheduler.event())["schedulerNames"] == ["moorage", "default-scheduler"]
        await until(world.placed("ours"))
        await until(world.placed("theirs"))
        offered = [(await decision(port, pod))["offered"] for pod in ("ours", "theirs")]
    assert offered == [1, 0]
    assert world.extender.verbs("ours") == ["filter"]
    assert world.extender.verbs("theirs") == []
    (event,) = world.events("theirs")
    assert event["reportingController"] == "default-scheduler"


async def decision(port: int, pod: str) -> dict[str, Any]:
    """Return what the process decided about a pod."""
    url = f"http://127.0.0.1:{port}/decisions/default/{pod}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        answer: dict[str, Any] = await response.json()
        return answer


async def test_it_stops_while_the_api_server_is_away() -> None:
    nobody = "http://127.0.0.1:9"
    options = (f"--config={CONFIG}", f"--api-server={nobody}", f"--extender-url={nobody}")
    async with forked(MODULE, *options) as scheduler:
        assert scheduler.stderr
        await scheduler.stderr.readline()  # the first complaint
        scheduler.process.send_signal(signal.SIGTERM)
        code, errors = await scheduler.ended()
    assert code == 0, errors


async def test_a_bad_configuration_ends_it_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("kind: Policy")
    async with forked(MODULE, f"--config={path}") as scheduler:
        code, errors = await scheduler.ended()
    assert code == 1
    (line,) = errors.splitlines()
    problem = f"{path}: not a valid KubeSchedulerConfiguration: "
    assert line.startswith(f"moorage kube-scheduler: {problem}")


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> KubeSchedulerConfiguration:
    return parse_configuration(HEAD + text)


def test_a_short_configuration_gets_kube_schedulers_defaults() -> None:
    configuration = read("")
    assert configuration.percentage_of_nodes_to_score == 0
    assert configuration.pod_initial_backoff_seconds == 1
    assert configuration.pod_max_backoff_seconds == 10
    assert [profile.scheduler_name for profile in configuration.profiles] == ["default-scheduler"]


def test_fields_that_the_stand_in_does_not_use_are_known() -> None:
    read(
        "leaderElection: {leaderElect: true, resourceName: x}\n"
        "clientConnection: {kubeconfig: /etc/x, qps: 50}\n"
        "parallelism: 8\n"
        "profiles:\n"
        "- schedulerName: a\n"
        "  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: A}}}]\n"
        "  plugins: {score: {enabled: [{name: ImageLocality, weight: 3}]}}\n"
    )


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("extenderz: []", "unknown field `extenderz`"),
        ("extenders: [{urlPrefix: a, nodeCachecapable: true}]", "$.extenders[0]"),
        ("extenders: [{urlPrefix: a, httpTimeout: 5}]", "$.extenders[0].httpTimeout"),
        ("extenders: [{urlPrefix: a, httpTimeout: 5 seconds}]", "extenders[0].httpTimeout"),
        ("extenders: [{urlPrefix: a, prioritizeVerb: p}]", "extenders[0].weight"),
        ("extenders: [{urlPrefix: a, bindVerb: b}, {urlPrefix: c, bindVerb: b}]", "found 2"),
        (
            "extenders: [{urlPrefix: a, managedResources: [{name: x/y}, {name: x/y}]}]",
            "extenders[0].managedResources",
        ),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[0].schedulerName"),
        ("profiles: []", "at least one"),
        ("profiles: [{plugins: {filter: {disable: []}}}]", "$.profiles[0].plugins.filter"),
        ("extenders: {}", "$.extenders"),
        ("percentageOfNodesToScore: 101", "$.percentageOfNodesToScore"),
        ("podInitialBackoffSeconds: 0", "$.podInitialBackoffSeconds"),
        ("podInitialBackoffSeconds: 20", "podMaxBackoffSeconds"),
        ("profiles: []\nprofiles: []", "profiles: the key is there twice"),
        ("profiles: [", "not YAML"),
    ],
)
def test_what_kube_scheduler_would_not_start_with_is_refused(text: str, where: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(text)
    assert where in str(caught.value)


def test_other_kinds_and_versions_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="apiVersion"):
        parse_configuration(
            "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
        )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("", 5.0), ("httpTimeout: 0s", 5.0), ("httpTimeout: 1500ms", 1.5), ("httpTimeout: -1s", None)],
)
def test_timeouts_are_gos(written: str, seconds: float | None) -> None:
    (extender,) = read(f"extenders:\n- urlPrefix: a\n  {written}\n").extenders
    assert extender.timeout == seconds


def test_the_extenders_url_can_be_replaced() -> None:
    text = HEAD + "extenders: [{urlPrefix: 'http://gateway:8888', filterVerb: filter}]"
    (extender,) = parse_configuration(text, "http://127.0.0.1:1").extenders
    assert (extender.url_prefix, extender.filter_verb) == ("http://127.0.0.1:1", "filter")


@pytest.mark.parametrize(
    ("plugins", "runs"),
    [
        ("{}", True),
        ("{filter: {disabled: [{name: NodePorts}]}}", False),
        ("{filter: {disabled: [{name: '*'}]}}", False),
        ("{multiPoint: {disabled: [{name: NodePorts}]}}", False),
        ("{multiPoint: {disabled: [{name: '*'}]}}", False),
        ("{multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodePorts}]}}", True),
        ("{filter: {disabled: [{name: '*'}], enabled: [{name: NodePorts}]}}", True),
        ("{filter: {disabled: [{name: NodeName}]}}", True),
        ("{score: {disabled: [{name: '*'}]}}", True),
    ],
)
def test_in_tree_filters_can_be_disabled(plugins: str, runs: bool) -> None:
    (profile,) = read(f"profiles: [{{plugins: {plugins}}}]").profiles
    assert ("NodePorts" in profile.filters) is runs


def test_plugins_keep_kube_schedulers_order_and_weights_where_nothing_else_is_configured() -> None:
    (profile,) = read("").profiles
    assert profile.filters[:4] == (
        "SchedulingGates",
        "PrioritySort",
        "NodeName",
        "NodeUnschedulable",
    )
    weights = {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert {name: profile.scores[name] for name in weights} == weights


@pytest.mark.parametrize(
    ("plugins", "scores"),
    [
        ("{score: {enabled: [{name: ImageLocality, weight: 5}]}}", {"ImageLocality": 5}),
        ("{multiPoint: {enabled: [{name: ImageLocality, weight: 7}]}}", {"ImageLocality": 7}),
        ("{score: {enabled: [{name: ImageLocality}]}}", {"ImageLocality": 1}),
        (
            "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: B, weight: 2}, {name: A}]}}",
            {"B": 2, "A": 1},
        ),
    ],
)
def test_weights_are_those_of_the_point_or_of_multi_point(
    plugins: str, scores: dict[str, int]
) -> None:
    (profile,) = read(f"profiles: [{{plugins: {plugins}}}]").profiles
    assert {name: profile.scores[name] for name in scores} == scores
    if "'*'" in plugins:
        assert list(profile.scores) == list(scores)


def test_a_file_that_is_missing_or_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(ConfigurationError, match=r"config\.yaml:1: cannot be read"):
        load_configuration(path)
    path.write_text("kind: Policy\n")
    with pytest.raises(ConfigurationError, match=r"config\.yaml: "):
        load_configuration(path)
