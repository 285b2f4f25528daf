"""What a Policy becomes, and what is said about it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.config.policies import available_plugins
from cli.legacy.convert import convert
from cli.legacy.names import FILTERS, PREDICATES, PRIORITIES, SCORES
from moorage import Arguments, FilterPlugin, Node, Pod, Rejection, ScorePlugin
from moorage.plugin.base import Plugin
from tests.cli.legacy.support import HEADER, POLICY, Converted, Object, Translate, names, weighted


def test_the_article_s_policy_becomes_both_documents(tmp_path: Path) -> None:
    conversion = convert(POLICY, available_plugins(), "extended-scheduler", "http://gateway:1")
    converted = Converted(conversion, tmp_path)
    assert converted.filters == [
        *("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts"),
        *("NodeResourcesFit", "VolumeRestrictions"),
    ]
    assert converted.scores == {
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "PodTopologySpread": 1,
    }
    assert converted.arguments == {
        "NodeResourcesFit": {"scoringStrategy": {"type": "LeastAllocated"}},
        "PodTopologySpread": {"defaultingType": "System"},
        "InterPodAffinity": {"hardPodAffinityWeight": 10},
    }
    assert converted.upstream["extenders"][0] == {
        "urlPrefix": "http://localhost:30036/my_scheduler_extension",
        "prioritizeVerb": "my_new_priorities/image_score",
        "weight": 1,
    }
    (filters,), (scores,) = (converted.policy.policies[k].profiles for k in ("filter", "score"))
    ours = [plugin.name for plugin in filters.plugins]
    assert ours[:4] == ["NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity"]
    weights = {plugin.name: plugin.weight for plugin in scores.plugins}
    assert weights["NodeResourcesLeastAllocated"] == 1
    assert weights["NodeResourcesBalancedAllocation"] == 1
    assert "ImageLocality" not in weights
    assert converted.policy.profile_names == ("extended-scheduler",)


def test_each_part_of_the_article_s_policy_has_its_line() -> None:
    conversion = convert(POLICY, available_plugins(), "default-scheduler", "http://gateway:1")
    told = [note.removeprefix(f"{POLICY}:") for note in conversion.notes]
    for expected in (
        "5: predicates[0]: PodFitsHostPorts became NodePorts",
        "9: predicates[4]: HostName became NodeName",
        "14: priorities[2]: ServiceSpreadingPriority became the score of PodTopologySpread: ",
        "15: priorities[3]: EqualPriority dropped: it gave every node the same",
        "24: hardPodAffinitySymmetricWeight: became hardPodAffinityWeight of InterPodAffinity",
    ):
        assert any(line.startswith(expected) for line in told), expected
    lines = [int(note.partition(":")[0]) for note in told]
    assert lines == sorted(lines)


def test_absent_predicates_are_the_default_ones_and_none_listed_are_the_mandatory_ones(
    translate: Translate,
) -> None:
    for absent in ({}, {"predicates": None}):
        converted = translate(**absent)
        assert converted.filters == list(FILTERS)
        assert "plugins" not in converted.profile
        (filters,) = converted.policy.policies["filter"].profiles
        assert [plugin.name for plugin in filters.plugins] == [
            *("NodeUnschedulable", "NodeName", "TaintToleration"),
            *("NodeAffinity", "NodePorts", "NodeResourcesFit"),
        ]
    none = translate(predicates=[])
    assert none.filters == ["NodeUnschedulable", "TaintToleration"]
    enabled = none.beside["profiles"][0]["plugins"]["filter"]["enabled"]
    assert enabled == names("NodeUnschedulable", "TaintToleration")
    text = "predicates: added NodeUnschedulable and TaintToleration: they always ran, and do"
    assert text in none.notes


def test_absent_priorities_are_the_default_ones_whatever_the_predicates(
    translate: Translate,
) -> None:
    cases: list[Object] = [{}, {"predicates": []}]
    for fields in cases:
        (scores,) = translate(**fields).policy.policies["score"].profiles
        assert {plugin.name: plugin.weight for plugin in scores.plugins} == {
            "TaintToleration": 3,
            "NodeAffinity": 2,
            "NodeResourcesLeastAllocated": 1,
            "NodeResourcesBalancedAllocation": 1,
            "ImageLocality": 1,
        }


def test_no_priorities_listed_is_no_score_at_all(translate: Translate) -> None:
    converted = translate(priorities=[])
    assert converted.off("score") >= set(SCORES)
    assert converted.scores == {}
    (scores,) = converted.policy.policies["score"].profiles
    assert scores.plugins == ()


def test_a_plugin_that_only_scores_does_not_filter_and_the_other_way_round(
    translate: Translate,
) -> None:
    converted = translate(
        predicates=names("MatchInterPodAffinity"), priorities=weighted(EvenPodsSpreadPriority=4)
    )
    assert "PodTopologySpread" not in converted.filters
    assert "InterPodAffinity" in converted.filters
    assert "PodTopologySpread" in converted.off("preFilter")
    assert "InterPodAffinity" in converted.off("score") & converted.off("preScore")
    assert converted.scores == {"PodTopologySpread": 4}
    assert converted.arguments["PodTopologySpread"] == {"defaultingType": "List"}


def test_general_predicates_are_four_filters(translate: Translate) -> None:
    converted = translate(predicates=names("GeneralPredicates"))
    assert set(converted.filters) - {"NodeUnschedulable", "TaintToleration"} == {
        *("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit")
    }


def test_what_is_listed_twice_counts_with_the_larger_weight(translate: Translate) -> None:
    converted = translate(priorities=weighted(SelectorSpreadPriority=5, ServiceSpreadingPriority=2))
    assert converted.scores == {"PodTopologySpread": 5}
    assert any("the larger weight counts" in note for note in converted.notes)


def test_kube_scheduler_has_one_strategy_and_the_first_one_wins(translate: Translate) -> None:
    converted = translate(priorities=weighted(MostRequestedPriority=3, LeastRequestedPriority=2))
    assert converted.scores == {"NodeResourcesFit": 3}
    assert converted.arguments["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"
    (note,) = [note for note in converted.notes if note.startswith("priorities[1]: ")]
    assert note.endswith("NodeResourcesFit has one strategy, and MostAllocated came first")
    scores = converted.beside["profiles"][0]["plugins"]["score"]["enabled"]
    assert {"name": "NodeResourcesLeastAllocated", "weight": 2} in scores


def test_a_curve_keeps_its_points_and_resources(translate: Translate) -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    resources = [{"name": "example.com/gpu", "weight": 5}, {"name": "cpu"}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape, "resources": resources}}
    converted = translate(priorities=[{"name": "Mine", "weight": 7, "argument": argument}])
    assert converted.scores == {"NodeResourcesFit": 7}
    assert converted.arguments["NodeResourcesFit"]["scoringStrategy"] == {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {"shape": shape},
        "resources": [{"name": "example.com/gpu", "weight": 5}, {"name": "cpu", "weight": 1}],
    }


@pytest.mark.parametrize(("presence", "operator"), [(True, "Exists"), (False, "DoesNotExist")])
def test_labels_that_all_nodes_must_have_become_added_affinity(
    translate: Translate, presence: bool, operator: str
) -> None:
    argument = {"labelsPresence": {"labels": ["a", "b"], "presence": presence}}
    converted = translate(predicates=[{"name": "Mine", "argument": argument}])
    assert "NodeAffinity" in converted.filters
    added = converted.arguments["NodeAffinity"]["addedAffinity"]
    (term,) = added["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": k, "operator": operator} for k in ("a", "b")]


@pytest.mark.parametrize(
    ("part", "argument", "advice"),
    [
        ("predicates", {"serviceAffinity": {"labels": ["zone"]}}, "podAffinity"),
        ("priorities", {"serviceAntiAffinity": {"label": "z"}}, "topologySpreadConstraints"),
        ("priorities", {"labelPreference": {"label": "z"}}, "preferred node affinity"),
    ],
)
def test_what_has_no_counterpart_is_dropped_with_advice(
    translate: Translate, part: str, argument: Object, advice: str
) -> None:
    weight = {"weight": 1} if part == "priorities" else {}
    converted = translate(**{part: [{"name": "Mine", "argument": argument, **weight}]})
    (note,) = [note for note in converted.notes if note.startswith(f"{part}[0]: ")]
    assert "dropped" in note
    assert advice in note


def test_an_extender_keeps_its_fields_in_today_s_spelling(translate: Translate) -> None:
    converted = translate(
        extenders=[
            {
                "urlPrefix": "https://old/x",
                "filterVerb": "f",
                "bindVerb": "b",
                "enableHttps": True,
                "httpTimeout": 1_500_000_000,
                "ignorable": True,
                "tlsConfig": {"caFile": "/ca.crt", "serverName": "old"},
                "managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}],
            }
        ]
    )
    old, ours = converted.upstream["extenders"]
    assert old == {
        "urlPrefix": "https://old/x",
        "filterVerb": "f",
        "bindVerb": "b",
        "enableHTTPS": True,
        "httpTimeout": "1.5s",
        "ignorable": True,
        "tlsConfig": {"caFile": "/ca.crt", "serverName": "old"},
        "managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}],
    }
    assert (ours["urlPrefix"], "bindVerb" in ours) == ("http://gateway:1", False)
    assert "extenders[0].enableHttps: is spelt enableHTTPS now" in converted.notes
    assert "extenders[0].httpTimeout: nanoseconds became a duration: 1.5s" in converted.notes
    assert "extenders[0].bindVerb: only one extender may bind, so Moorage does not" in (
        converted.notes
    )
    assert any("kubernetes#141781" in note for note in converted.notes)


def test_resources_are_not_ignored_where_nothing_counts_them(translate: Translate) -> None:
    managed = [{"name": "example.com/x", "ignoredByScheduler": True}]
    extender = {"urlPrefix": "http://x", "managedResources": managed}
    converted = translate(predicates=[], priorities=[], extenders=[extender])
    # With it kube-scheduler would not start: it looks for the arguments of NodeResourcesFit.
    assert converted.upstream["extenders"][0]["managedResources"] == names("example.com/x")


class InterPodAffinity(FilterPlugin, ScorePlugin):
    class Args(Arguments):
        hard_pod_affinity_weight: int = 1

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None

    def score_node(self, pod: Pod, node: Node) -> float:
        return 0


class Equal(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        return 0


class VolumeRestrictions(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None


def test_only_plugins_that_moorage_has_are_in_its_configuration(tmp_path: Path) -> None:
    file = tmp_path / "legacy.json"
    policy = {
        "predicates": names("NoDiskConflict", "MatchInterPodAffinity", "CheckVolumeBinding"),
        "priorities": weighted(
            EqualPriority=2, InterPodAffinityPriority=3, ImageLocalityPriority=4
        ),
        "hardPodAffinitySymmetricWeight": 10,
    }
    file.write_text(json.dumps(HEADER | policy))
    filters: Mapping[str, type[Plugin]] = {
        kind.name: kind for kind in (InterPodAffinity, VolumeRestrictions)
    }
    scores: Mapping[str, type[Plugin]] = {kind.name: kind for kind in (InterPodAffinity, Equal)}
    conversion = convert(file, {"filter": filters, "score": scores}, "s", "http://gateway:1")
    (profile,) = yaml.safe_load(conversion.documents["policy.yaml"])["profiles"]
    assert profile["plugins"]["filter"]["enabled"] == names(
        "VolumeRestrictions", "InterPodAffinity"
    )
    assert profile["plugins"]["score"]["enabled"] == weighted(InterPodAffinity=3, Equal=2)
    assert profile["pluginConfig"] == [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 10}}
    ]
    notes = "\n".join(conversion.notes)
    assert "Moorage has no filter NodeUnschedulable, TaintToleration, VolumeBinding: " in notes
    assert "Moorage has no score ImageLocality: kube-scheduler's own goes on" in notes
    assert "EqualPriority became Equal in Moorage" in notes


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    predicates=st.none() | st.lists(st.sampled_from(sorted(PREDICATES)), unique=True),
    priorities=st.none() | st.dictionaries(st.sampled_from(sorted(PRIORITIES)), st.integers(1, 9)),
    hard=st.integers(0, 100),
)
def test_every_policy_becomes_documents_that_are_understood_without_warnings(
    translate: Translate,
    predicates: list[str] | None,
    priorities: dict[str, int] | None,
    hard: int,
) -> None:
    converted = translate(
        predicates=None if predicates is None else names(*predicates),
        priorities=None if priorities is None else weighted(**priorities),
        hardPodAffinitySymmetricWeight=hard,
    )
    assert converted.policy.warnings == ()
    for index, name in enumerate(predicates or ()):
        assert set(PREDICATES[name]) <= set(converted.filters)
        assert any(note.startswith(f"predicates[{index}]: {name} ") for note in converted.notes)
    for index, name in enumerate(priorities or ()):
        assert any(note.startswith(f"priorities[{index}]: {name} ") for note in converted.notes)
        plugin = PRIORITIES[name]
        assert plugin is None or plugin in converted.scores
