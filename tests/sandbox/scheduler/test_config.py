from pathlib import Path

import pytest

from moorage.errors import ConfigurationError
from sandbox.scheduler import Configuration, load_configuration, parse_configuration

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> Configuration:
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
