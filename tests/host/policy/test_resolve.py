from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import PluginLoadError
from moorage_host.policy import (
    API_VERSION,
    KIND,
    Catalogue,
    Kind,
    PluginInfo,
    ResolvedPolicy,
    decode_effective,
    parse,
    resolve,
)

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"
UPSTREAM = {
    "NodeUnschedulable": "filter",
    "NodeName": "filter",
    "TaintToleration": "filter score",
    "NodeAffinity": "filter score",
    "NodePorts": "filter",
    "NodeResourcesFit": "filter",
    "NodeResourcesLeastAllocated": "score",
    "NodeResourcesBalancedAllocation": "score",
    "ImageLocality": "score",
}
IN_TREE_FILTERS = (
    "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit"
)
IN_TREE_SCORES = (
    "TaintToleration=3 NodeAffinity=2 NodeResourcesLeastAllocated=1 "
    "NodeResourcesBalancedAllocation=1 ImageLocality=1"
)
POINTS = {"filter": "Filter", "score": "Score", "bind": "PostBind"}


class NodeGroupArgs(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    node_label: str = "group"
    limit: Annotated[int, msgspec.Meta(ge=1)] = 5


def plugin(name: str, kinds: str, origin: str = "built-in", **more: Any) -> PluginInfo:
    points = frozenset(POINTS[kind] for kind in kinds.split())
    return PluginInfo(name=name, points=points, origin=origin, **more)


CATALOGUE = Catalogue(
    [
        *(plugin(name, kinds) for name, kinds in UPSTREAM.items()),
        plugin(
            "NodeGroup",
            "filter score",
            "nodegroup 1.2",
            args_schema=msgspec.json.schema(NodeGroupArgs),
            default_args=msgspec.to_builtins(NodeGroupArgs()),
        ),
        plugin("Webhook", "bind", "/plugins/webhook.py"),
        plugin("Extra", "score"),
    ]
)


def resolved(body: str = "", catalogue: Catalogue = CATALOGUE) -> ResolvedPolicy:
    return resolve(parse(HEADER + body, "p.yaml"), catalogue)


def plugins(sets: str) -> ResolvedPolicy:
    return resolved(f"profiles:\n- plugins: {sets}\n")


def order(policy: ResolvedPolicy, kind: Kind, profile: int = 0) -> str:
    entries = policy.policies[kind].profiles[profile].plugins
    return " ".join(f"{p.name}={p.weight}" if kind == "score" else p.name for p in entries)


@pytest.mark.parametrize("name", ["InTree", "*"])
def test_no_plugin_can_have_a_name_that_means_something_else(name: str) -> None:
    with pytest.raises(PluginLoadError, match=r"from acme 1.0 cannot have this name.*rename it"):
        Catalogue([plugin(name, "filter", "acme 1.0")])


ENABLED = "{multiPoint: {enabled: [%s]}}"


@pytest.mark.parametrize(
    ("sets", "filters", "scores"),
    [
        (ENABLED % "{name: InTree}", IN_TREE_FILTERS, IN_TREE_SCORES),
        (  # the place of the set does not count; a plugin is replaced in its own
            ENABLED
            % "{name: NodeGroup, weight: 4}, {name: InTree}, {name: ImageLocality, weight: 9}",
            f"{IN_TREE_FILTERS} NodeGroup",
            f"{IN_TREE_SCORES.removesuffix('1')}9 NodeGroup=4",
        ),
        ("{filter: {enabled: [{name: NodeGroup}]}}", "NodeGroup", ""),
    ],
)
def test_a_profile_is_merged_as_kube_scheduler_does(sets: str, filters: str, scores: str) -> None:
    policy = plugins(sets)
    assert order(policy, "filter") == filters
    assert order(policy, "score") == scores


CONFIGURED = """profiles:
- plugins: {multiPoint: {enabled: [{name: InTree}, {name: NodeGroup}]}}
  pluginConfig:
  - name: NodeGroup
    args: {limit: 7}
    timeBudget: 250ms
  - name: NodeName
    failurePolicy: Ignore
"""


def test_a_replica_gets_arguments_and_limits_and_where_they_stand() -> None:
    policies = resolved(CONFIGURED).policies
    filters = {plugin.name: plugin for plugin in policies["filter"].profiles[0].plugins}
    shown = {
        name: (each.args, each.failure_policy, each.time_budget_seconds, each.path)
        for name in ("NodeGroup", "NodeName", "NodePorts")
        if (each := filters[name])
    }
    assert shown == {
        "NodeGroup": ({"limit": 7}, "Abort", 0.25, "p.yaml:7: profiles[0].pluginConfig[0].args"),
        "NodeName": ({}, "Ignore", 1.0, "p.yaml:9: profiles[0].pluginConfig[1]"),
        "NodePorts": ({}, "Abort", 1.0, "p.yaml:4: profiles[0].plugins.multiPoint.enabled[0]"),
    }
    assert {each.failure_policy for each in policies["score"].profiles[0].plugins} == {"Ignore"}
    assert order(plugins(ENABLED % "{name: Webhook}"), "bind") == "Webhook"


def test_the_time_budget_is_that_of_the_policy_or_of_the_class() -> None:
    slow = [plugin(name, "filter", time_budget=5.0) for name in ("NodeName", "Slow")]
    names = "[{name: NodeName}, {name: Slow}, {name: NodeGroup}]"
    text = (
        f"profiles:\n- plugins: {{multiPoint: {{enabled: {names}}}}}\n"
        "  pluginConfig: [{name: NodeName, timeBudget: 250ms}, {name: Slow, args: {}}]\n"
    )
    policy = resolve(parse(HEADER + text, "p.yaml"), Catalogue([*CATALOGUE, *slow]))
    budgets = {p.name: p.time_budget_seconds for p in policy.policies["filter"].profiles[0].plugins}
    assert budgets == {"NodeName": 0.25, "Slow": 5.0, "NodeGroup": 1.0}


def test_a_budget_that_is_set_to_the_default_is_told_from_the_default() -> None:
    names = "[{name: NodeName}, {name: NodePorts}, {name: NodeGroup}]"
    text = (
        f"profiles:\n- plugins: {{multiPoint: {{enabled: {names}}}}}\n"
        "  pluginConfig: [{name: NodeName, timeBudget: 1s}, {name: NodePorts, timeBudget: 2s}]\n"
    )
    policy = resolve(parse(HEADER + text, "p.yaml"), Catalogue(CATALOGUE))
    for again in (policy, resolve(parse(policy.to_yaml(), "p.yaml"), Catalogue(CATALOGUE))):
        (profile,) = decode_effective(again.for_kind("filter")).profiles
        by_size = {each.name: each.budget_is_by_size for each in profile.plugins}
        assert by_size == {"NodeName": False, "NodePorts": False, "NodeGroup": True}
    assert "timeBudget: 1s" in policy.to_yaml()


def test_an_explicit_budget_is_sent_in_the_fields_that_replicas_of_other_versions_know() -> None:
    text = (
        "profiles:\n- plugins: {multiPoint: {enabled: [{name: NodeName}]}}\n"
        "  pluginConfig: [{name: NodeName, timeBudget: 1s}]\n"
    )
    sent = resolve(parse(HEADER + text, "p.yaml"), Catalogue(CATALOGUE)).for_kind("filter")
    (fields,) = msgspec.json.decode(sent)["profiles"][0]["plugins"]
    known = {"name", "weight", "args", "failurePolicy", "timeBudgetSeconds", "path"}
    assert fields.keys() == known


def test_the_revision_changes_with_the_content_and_not_with_its_place() -> None:
    policy = resolved(CONFIGURED)
    assert resolved("# a comment\n" + CONFIGURED).revision == policy.revision
    for changed in ("limit: 8", "limit: 7, nodeLabel: x"):
        assert resolved(CONFIGURED.replace("limit: 7", changed)).revision != policy.revision
    assert resolved("scoreScale: 1000\n" + CONFIGURED).revision != policy.revision


def test_a_plugin_has_its_own_weight_where_the_policy_gives_none() -> None:
    catalogue = Catalogue([plugin("Heavy", "score", weight=7), plugin("Light", "score")])

    def weights(text: str) -> list[int]:
        policy = resolve(parse(HEADER + text, "p.yaml"), catalogue).policies["score"]
        return [each.weight for each in policy.profiles[0].plugins]

    enabled = "profiles: [{plugins: {score: {enabled: [{name: Heavy%s}, {name: Light}]}}}]"
    assert weights(enabled % "") == [7, 1]
    assert weights(enabled % ", weight: 0") == [7, 1]
    assert weights(enabled % ", weight: 3") == [3, 1]


def test_a_weight_concerns_the_scorer_only() -> None:
    light, heavy = (
        plugins(f"{{multiPoint: {{enabled: [{{name: NodeGroup, weight: {weight}}}]}}}}").policies
        for weight in (1, 2)
    )
    assert light["filter"].revision == heavy["filter"].revision
    assert light["score"].revision != heavy["score"].revision


NAMES = st.lists(st.sampled_from([*UPSTREAM, "NodeGroup", "InTree"]), unique=True, max_size=4)
SCORE_NAMES = st.lists(
    st.sampled_from(["NodeGroup", "Extra", "NodeAffinity", "ImageLocality"]), unique=True
)
DISABLED = st.lists(st.sampled_from([*UPSTREAM, "*", "Unknown"]), unique=True, max_size=3)


def items(names: list[str]) -> list[dict[str, object]]:
    return [{"name": name} for name in names]


def weighted(names: list[str], weight: int) -> list[dict[str, object]]:
    return [{"name": n} | ({} if n == "InTree" else {"weight": weight}) for n in names]


@given(NAMES, DISABLED, SCORE_NAMES, DISABLED, st.integers(0, 5))
def test_the_description_is_a_document_that_means_the_same(
    enabled: list[str], disabled: list[str], scores: list[str], unscored: list[str], weight: int
) -> None:
    sets = {
        "multiPoint": {"enabled": weighted(enabled, weight), "disabled": items(disabled)},
        "score": {"enabled": items(scores), "disabled": items(unscored)},
    }
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": sets}]}
    policy = resolve(parse(msgspec.json.encode(document).decode(), "p.json"), CATALOGUE)
    again = resolve(parse(policy.to_yaml(), "shown"), CATALOGUE)
    assert again.describe() == policy.describe()
    for kind in ("filter", "score"):
        assert order(again, kind) == order(policy, kind)
