"""What a Policy becomes, what is said about it, and what is said about mistakes in it."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.legacy.convert import convert
from cli.legacy.names import FILTERS, PREDICATES, PRIORITIES
from moorage_host.kube_scheduler import KubeSchedulerConfiguration, load_configuration
from tests.cli.support import invoked

Object = dict[str, Any]

POLICY = Path(__file__).parents[2] / "data" / "legacy-policy.json"
HEADER: Object = {"kind": "Policy", "apiVersion": "v1"}


class Converted:
    """The configuration as the stand-in for kube-scheduler reads it; notes without the file."""

    def __init__(self, conversion: tuple[str, list[str]], folder: Path) -> None:
        file = folder / "kube-scheduler-config.yaml"
        configuration, notes = conversion
        file.write_text(configuration)
        self.configuration: KubeSchedulerConfiguration = load_configuration(file)
        self.upstream = yaml.safe_load(configuration)
        (self.profile,) = self.upstream["profiles"]
        self.notes = [note.partition(": ")[2] for note in notes]

    @property
    def filters(self) -> list[str]:
        """Return which filters of kube-scheduler run."""
        runs = self.configuration.profiles[0].filters
        return [name for name in FILTERS if name in runs]

    @property
    def scores(self) -> Object:
        """Return the weights that kube-scheduler's scores are given."""
        enabled = self.profile.get("plugins", {}).get("score", {}).get("enabled", ())
        return {entry["name"]: entry["weight"] for entry in enabled}

    @property
    def arguments(self) -> Object:
        return {entry["name"]: entry["args"] for entry in self.profile.get("pluginConfig", ())}

    def off(self, point: str) -> set[str]:
        """Return the plugins that do not run at a point."""
        sets = [self.profile["plugins"].get(each, {}) for each in ("multiPoint", point)]
        return {entry["name"] for each in sets for entry in each.get("disabled", ())}


Translate = Callable[..., Converted]
"""Converts the Policy with these fields."""


@pytest.fixture
def translate(tmp_path: Path) -> Translate:
    def run(**fields: Any) -> Converted:
        file = tmp_path / "legacy.json"
        file.write_text(json.dumps(HEADER | fields))
        return Converted(convert(file, "default-scheduler"), tmp_path)

    return run


moorage = partial(invoked, "convert-policy")


def names(*listed: str) -> list[Object]:
    return [{"name": name} for name in listed]


def weighted(**weights: int) -> list[Object]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def test_the_article_s_policy_becomes_both_documents(tmp_path: Path) -> None:
    conversion = convert(POLICY, "extended-scheduler")
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
    told = [note.removeprefix(f"{POLICY}:") for note in conversion[1]]
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
    none = translate(predicates=[])
    assert none.filters == ["NodeUnschedulable", "TaintToleration"]
    text = "predicates: added NodeUnschedulable and TaintToleration: they always ran, and do"
    assert text in none.notes


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


LEAST, MOST = "LeastRequestedPriority", "MostRequestedPriority"
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
CURVE = {"requestedToCapacityRatioArguments": {"shape": SHAPE}}


@pytest.mark.parametrize(
    ("curve", "least", "most", "strategy", "weight"),
    [
        (0, 1, 9, "MostAllocated", 8),
        (0, 9, 1, "LeastAllocated", 8),
        (0, 2, 3, "MostAllocated", 1),
        (0, 4, 4, "", 0),
        (0, 0, 5, "MostAllocated", 5),
        (0, 5, 0, "LeastAllocated", 5),
        (7, 3, 0, "RequestedToCapacityRatio", 7),
        (3, 7, 0, "LeastAllocated", 7),
        (3, 3, 0, "RequestedToCapacityRatio", 3),
    ],
)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_of_two_strategies_the_heavier_remains_opposites_with_the_difference(
    translate: Translate,
    curve: int,
    least: int,
    most: int,
    strategy: str,
    weight: int,
    is_reversed: bool,
) -> None:
    listed = weighted(**{name: w for name, w in ((LEAST, least), (MOST, most)) if w})
    listed += [{"name": "Mine", "weight": curve, "argument": CURVE}] * bool(curve)
    converted = translate(priorities=listed[::-1] if is_reversed else listed)
    assert converted.scores == ({"NodeResourcesFit": weight} if weight else {})
    if weight:
        assert converted.arguments["NodeResourcesFit"]["scoringStrategy"]["type"] == strategy
    else:
        assert "NodeResourcesFit" in converted.off("score")
    opposite = [note for note in converted.notes if "nearly opposite" in note]
    assert len(opposite) == bool(least and most)
    dropped = any("has one strategy" in n and "is dropped" in n for n in converted.notes)
    assert dropped == bool(curve and least)


def test_a_curve_keeps_its_points_and_resources(translate: Translate) -> None:
    resources = [{"name": "example.com/gpu", "weight": 5}, {"name": "cpu"}]
    argument = {"requestedToCapacityRatioArguments": {"shape": SHAPE, "resources": resources}}
    converted = translate(priorities=[{"name": "Mine", "weight": 7, "argument": argument}])
    assert converted.scores == {"NodeResourcesFit": 7}
    assert converted.arguments["NodeResourcesFit"]["scoringStrategy"] == {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {"shape": SHAPE},
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
    ("argument", "advice"),
    [
        ({"serviceAntiAffinity": {"label": "zone"}}, "topologySpreadConstraints for label `zone`"),
        ({"labelPreference": {"label": "zone"}}, "preferred node affinity"),
    ],
)
def test_a_score_that_has_no_counterpart_is_dropped_with_advice(
    translate: Translate, argument: Object, advice: str
) -> None:
    converted = translate(priorities=[{"name": "Mine", "argument": argument, "weight": 1}])
    (note,) = [note for note in converted.notes if note.startswith("priorities[0]: ")]
    assert "dropped" in note
    assert advice in note


def test_a_hard_rule_that_is_lost_is_told_first_and_with_its_labels(translate: Translate) -> None:
    region = {"name": "Region", "argument": {"serviceAffinity": {"labels": ["region", "room"]}}}
    converted = translate(predicates=[*names("HostName"), region], priorities=[])
    assert converted.notes[0].startswith(
        "predicates[1]: Region (serviceAffinity): a hard rule is lost: it kept pods of a "
        "Service on nodes with the same labels `region`, `room`; "
    )


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
    (old,) = converted.upstream["extenders"]
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
    assert "extenders[0].enableHttps: is spelt enableHTTPS now" in converted.notes
    assert "extenders[0].httpTimeout: nanoseconds became a duration: 1.5s" in converted.notes
    assert any("kubernetes#141781" in note for note in converted.notes)


@pytest.mark.parametrize(
    ("field", "value", "note"),
    [
        ("apiVersion", "v1beta1", "left out: kube-scheduler has no field `apiVersion` here"),
        ("ignoreable", True, "left out: ... `ignoreable` here, did you mean `ignorable`?"),
        ("ignoreable", False, "left out: ... `ignoreable` here, did you mean `ignorable`?"),
        ("URLPrefix", "x", "left out: ... `URLPrefix` here, did you mean `urlPrefix`?"),
        ("bindverb", "b", "left out: ... `bindverb` here, did you mean `bindVerb`?"),
        ("mine", None, "left out: ... `mine` here"),
    ],
)
def test_a_field_that_an_extender_does_not_have_is_left_out_with_a_note(
    translate: Translate, field: str, value: object, note: str
) -> None:
    converted = translate(extenders=[{"urlPrefix": "http://x", "filterVerb": "f", field: value}])
    assert converted.upstream["extenders"] == [{"urlPrefix": "http://x", "filterVerb": "f"}]
    said = note.replace("...", "kube-scheduler has no field")
    assert f"extenders[0].{field}: {said}" in converted.notes


IN_CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: policy}
data:
  other.txt: Policy
  policy.cfg: |
    {"kind": "Policy", "apiVersion": "v1",
     "predicates": [{"name": "HostName"}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: x}
"""


def test_a_policy_in_a_config_map_and_among_documents_is_found(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(IN_CONFIG_MAP)
    _, notes = convert(file, "default-scheduler")
    place = f'{file}:6: data["policy.cfg"]:2: predicates[0]'
    assert f"{place}: HostName became NodeName" in notes
    file.write_text("kind: Namespace\n---\n# here\nkind: Policy\napiVersion: v1\npredicates: []\n")
    _, notes = convert(file, "default-scheduler")
    assert any(note.startswith(f"{file}:6: predicates: ") for note in notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (IN_CONFIG_MAP + "---\nkind: Policy\napiVersion: v1\n", ":1: there are several Policies"),
        (
            "kind: A\n---\nkind: B\n",
            ":1: there is no Policy in it: this is of kind A, this is of kind B",
        ),
        ("kind: ConfigMap\ndata: {a: b}\n", ":1: kind: this is a ConfigMap: write what stands"),
        (IN_CONFIG_MAP.replace("HostName", "HostNam"), ':6: data["policy.cfg"]:2: predicates[0].n'),
    ],
)
def test_a_file_without_one_policy_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(text)
    result = moorage(file)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}{said}"), result.stderr


def test_resources_are_not_ignored_where_nothing_counts_them(translate: Translate) -> None:
    managed = [{"name": "example.com/x", "ignoredByScheduler": True}]
    extender = {"urlPrefix": "http://x", "managedResources": managed}
    converted = translate(predicates=[], priorities=[], extenders=[extender])
    # With it kube-scheduler would not start: it looks for the arguments of NodeResourcesFit.
    assert converted.upstream["extenders"][0]["managedResources"] == names("example.com/x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    for index, name in enumerate(predicates or ()):
        assert set(PREDICATES[name]) <= set(converted.filters)
        assert any(note.startswith(f"predicates[{index}]: {name} ") for note in converted.notes)
    opposites = {"LeastRequestedPriority", "MostRequestedPriority"}
    for index, name in enumerate(priorities or ()):
        assert any(note.startswith(f"priorities[{index}]: {name} ") for note in converted.notes)
        plugin = PRIORITIES[name]
        is_outweighed = name in opposites and opposites <= set(priorities or ())
        assert plugin is None or plugin in converted.scores or is_outweighed


def test_it_prints_the_configuration_on_stdout_and_notes_on_stderr() -> None:
    result = moorage(POLICY, "--scheduler-name=batch")
    assert result.exit_code == 0
    upstream = yaml.safe_load(result.stdout)
    assert "&id" not in result.stdout, "kube-scheduler's reader knows no YAML anchors"
    assert upstream["kind"] == "KubeSchedulerConfiguration"
    assert upstream["profiles"][0]["schedulerName"] == "batch"
    assert all(line.startswith(f"Note: {POLICY}:") for line in result.stderr.splitlines())


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"apiVersion": "v2"}, 'apiVersion: expected "v1" or "kubescheduler.config.k8s.io/v1"'),
        (
            {"kind": "Pod"},
            "kind: this is of kind Pod; a Policy of kube-scheduler before 1.23 is expected",
        ),
        (
            {"kind": "MoorageConfiguration", "apiVersion": "moorage.io/v1alpha1"},
            "kind: this is a policy of Moorage: moorage config validate FILE reads it; ",
        ),
        ({"predicate": []}, "predicate: unknown field `predicate`, did you mean `predicates`?"),
        (
            {"predicates": [{"name": "Mine", "argument": {"labelsPresence": 1}}]},
            "predicates[0].argument.labelsPresence: expected",
        ),
        (
            {"predicates": names("PodFitsResource")},
            "predicates[0].name: unknown predicate `PodFitsResource`, did you mean",
        ),
        (
            {"predicates": names("zzz")},
            "predicates[0].name: unknown predicate `zzz`: kube-scheduler had none of this name; ",
        ),
        (
            {"priorities": weighted(EqualPrority=1)},
            "priorities[0].name: unknown priority `EqualPrority`, did you mean `EqualPriority`?",
        ),
        ({"priorities": names("EqualPriority")}, "priorities[0]: field `weight` is missing"),
        (
            {"priorities": weighted(EqualPriority=0)},
            "priorities[0].weight: expected an integer from 1 to 2147483647, got int 0",
        ),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            "hardPodAffinitySymmetricWeight: expected an integer from 0 to 100, got int 101",
        ),
        (
            {"priorities": weighted(RackOrderPriority=10)},
            "priorities[0].name: unknown priority `RackOrderPriority`: kube-scheduler had none",
        ),
        ({"extenders": ["http://x"]}, "extenders[0]: expected"),
        *(
            ({"extenders": [{"urlPrefix": "http://x", **extender}]}, f"extenders[0].{said}")
            for extender, said in (
                ({"ignorable": "true"}, 'ignorable: expected bool, got str "true"'),
                ({"weight": "5"}, 'weight: expected an integer of 64 bits, got str "5"'),
                ({"httpTimeout": True}, "httpTimeout: "),
                ({"httpTimeout": 1.5e9}, "httpTimeout: "),
                ({"httpTimeout": "5 s"}, "httpTimeout: expected a duration"),
                ({"managedResources": ["a/b"]}, "managedResources[0]: expected object"),
                ({"managedResources": [{"name": "cpu"}]}, 'managedResources[0].name: "cpu" must'),
                ({"prioritizeVerb": "p", "weight": 0}, "weight: must be positive"),
                ({"tlsConfig": {"insecure": True, "caFile": "/x"}}, "tlsConfig.insecure: must not"),
                ({"filterVerb": 5}, "filterVerb: expected str, got int 5"),
            )
        ),
    ],
)
def test_a_mistake_is_told_with_its_path(tmp_path: Path, fields: Object, problem: str) -> None:
    file = tmp_path / "legacy.json"
    file.write_text(json.dumps(HEADER | fields))
    result = moorage(file)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:1: {problem}"), result.stderr
    assert result.stdout == ""
