"""What is read of a KubeSchedulerConfiguration, and what is said of one that is refused."""

from pathlib import Path

import pytest

from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import (
    KubeSchedulerConfiguration,
    load_configuration,
    parse_configuration,
)
from tools.golden.configurations import HEAD


def read(text: str) -> KubeSchedulerConfiguration:
    return parse_configuration(HEAD + text)


def refused(text: str) -> list[str]:
    """Return the lines that are said of a text, without their source."""
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(text, source="f")
    return [line.removeprefix("f:") for line in str(caught.value).splitlines()]


SHORT = ("", "profiles:", "profiles: []", "profiles: [{}]", "extenders:")


@pytest.mark.parametrize("text", [*SHORT, "profiles: [{schedulerName: null}]"])
def test_a_short_configuration_gets_kube_schedulers_defaults(text: str) -> None:
    found = read(text)
    assert found.percentage_of_nodes_to_score == 0
    assert (found.pod_initial_backoff_seconds, found.pod_max_backoff_seconds) == (1, 10)
    assert (found.scheduler_names, found.extenders) == (["default-scheduler"], ())


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("", 5.0), ("httpTimeout: 0s", 5.0), ("httpTimeout: 1500ms", 1.5), ("httpTimeout: -1s", None)],
)
def test_timeouts_are_gos(written: str, seconds: float | None) -> None:
    (extender,) = read(f"extenders:\n- urlPrefix: a\n  {written}\n").extenders
    assert extender.timeout == seconds


@pytest.mark.parametrize(
    ("weight", "points"), [(1, 10), (15, 150), (2**63 - 1, -10), (2**62, -(2**63)), (-3, -30)]
)
def test_points_wrap_around_as_in_go(weight: int, points: int) -> None:
    (extender,) = read(f"extenders: [{{urlPrefix: a, weight: {weight}}}]").extenders
    assert extender.points == points


def test_the_extenders_url_can_be_replaced() -> None:
    text = HEAD + "extenders: [{urlPrefix: 'http://gateway:8888', filterVerb: filter}]"
    (extender,) = parse_configuration(text, "http://127.0.0.1:1").extenders
    assert (extender.url_prefix, extender.filter_verb) == ("http://127.0.0.1:1", "filter")


def test_plugins_keep_kube_schedulers_order_and_weights_where_nothing_else_is_configured() -> None:
    (profile,) = read("").profiles
    first = ("NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity")
    assert profile.filters[:4] == first
    assert profile.post_filters == ("DynamicResources", "DefaultPreemption")
    assert profile.scores == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


@pytest.mark.parametrize(
    ("args", "known"),
    [
        ("null", {}),
        ("{kind: NodeResourcesFitArgs, scoringStrategy: null}", {}),
        (
            "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 0}, null]}}",
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": ({"name": "cpu", "weight": 1}, {"name": "", "weight": 1}),
                }
            },
        ),
    ],
)
def test_arguments_are_given_with_kube_schedulers_defaults(args: str, known: object) -> None:
    (profile,) = read(
        f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]"
    ).profiles
    assert profile.arguments("NodeResourcesFit") == known
    assert profile.arguments("NodeName") == {}


MISTAKES = r"""
paralellism: 4
profiles:
- schedulerName: a
  plugins:
    score:
      enabled:
      - {name: NodeAfinity, wieght: 3}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {tpye: MostAllocated}
extenders:
- urlPrefix: http://127.0.0.1:1
  ignoreable: true
  httpTimeout: 5
-> 3: paralellism: unknown field `paralellism`, did you mean `parallelism`?
-> 9: profiles[0].plugins.score.enabled[0].name: unknown plugin `NodeAfinity`, did you mean
   `NodeAffinity`?
-> 9: profiles[0].plugins.score.enabled[0].wieght: unknown field `wieght`, did you mean `weight`?
-> 13: profiles[0].pluginConfig[0].args.scoringStrategy.tpye: unknown field `tpye`, did you mean
   `type`?
-> 13: profiles[0].pluginConfig[0].args.scoringStrategy.type: must be LeastAllocated,
   MostAllocated or RequestedToCapacityRatio, got ""
-> 16: extenders[0].ignoreable: unknown field `ignoreable`, did you mean `ignorable`?
-> 17: extenders[0].httpTimeout: expected a duration such as "500ms" or "5s", got int 5

apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
-> 1: apiVersion: kube-scheduler does not read v1beta3 any more since Kubernetes 1.29: write
   `apiVersion: kubescheduler.config.k8s.io/v1`, here and in the args of pluginConfig; other
   mistakes are found after that

kind: KubeSchedulerConfiguration
-> 1: apiVersion: write `apiVersion: kubescheduler.config.k8s.io/v1`

{"kind": "Policy", "apiVersion": "v1"}
-> 1: kind: this is a Policy of kube-scheduler before 1.23: moorage convert-policy FILE translates
   it; a KubeSchedulerConfiguration is expected here

apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
-> 2: kind: this is a policy of Moorage: moorage config validate FILE reads it; a
   KubeSchedulerConfiguration is expected here

profiles: [{plugins: {score: {enabled: [{name: NodeResourcesMostAllocated}]}}}]
-> 3: profiles[0].plugins.score.enabled[0].name: unknown plugin `NodeResourcesMostAllocated`: it
   is the scoringStrategy MostAllocated of NodeResourcesFit since Kubernetes 1.23

profiles: [{plugins: {score: {enabled: [{name: NoSuchScore}]}}}]
-> 3: profiles[0].plugins.score.enabled[0].name: unknown plugin `NoSuchScore`: kube-scheduler has
   none of this name

profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]
-> 3: profiles[0].plugins.score.enabled[0].name: `NodeName` does not run at score, only at filter,
   preFilter

schedulerName: a
-> 3: schedulerName: unknown field `schedulerName`: it belongs to profiles[]

profiles: [{schedulerName: yes}]
-> 3: profiles[0].schedulerName: expected str, got bool true; YAML reads yes as true: write "yes"
   if text is meant
"""
"""Texts, below the two lines that all begin with unless they have their own, and what is said."""


@pytest.mark.parametrize("case", MISTAKES.strip().split("\n\n"), ids=lambda case: case[-60:])
def test_mistakes_are_told_with_line_near_name_and_what_to_write(case: str) -> None:
    text, *told = case.split("\n-> ")
    head = "" if text.startswith(("apiVersion", "kind", "{")) else HEAD
    assert refused(head + text + "\n") == [" ".join(each.split()) for each in told]


def test_a_file_that_is_missing_or_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(ConfigurationError, match=r"config\.yaml:1: cannot be read"):
        load_configuration(path)
    path.write_text("[]\n")
    with pytest.raises(ConfigurationError, match=r"config\.yaml:1: expected object, got array"):
        load_configuration(path)


def test_of_very_many_mistakes_a_hundred_are_said() -> None:
    *hundred, last = refused(HEAD + "".join(f"unknown{i}: 1\n" for i in range(250)))
    assert (len(hundred), last) == (100, " 150 more mistakes")
