"""The shadow of a profile: merged into its plugins, refused where it makes no sense."""

import pytest

from moorage_host.policy import ResolvedPolicy, parse, resolve
from tests.host.policy.test_resolve import CATALOGUE, IN_TREE_FILTERS, order, resolved

LIVE = """profiles:
- plugins:
    multiPoint: {enabled: [{name: InTree}, {name: NodeGroup}]}
    score: {enabled: [{name: Extra, weight: 2}], disabled: [{name: NodeAffinity}]}
  pluginConfig: [{name: NodeGroup, args: {nodeLabel: team, limit: 2}}]
"""


def shadowed(body: str, live: str = LIVE) -> ResolvedPolicy:
    return resolved(f"{live}  shadow: {body}\n")


def scores(policy: ResolvedPolicy) -> str:
    return " ".join(f"{p.name}={p.weight}" for p in policy.policies["score"].shadows[0].plugins)


def filters(policy: ResolvedPolicy) -> str:
    return " ".join(p.name for p in policy.policies["filter"].shadows[0].plugins)


@pytest.mark.parametrize(
    ("body", "filtering", "scoring"),
    [
        (  # another weight
            "{plugins: {score: {enabled: [{name: ImageLocality, weight: 7}]}}}",
            f"{IN_TREE_FILTERS} NodeGroup",
            (
                "ImageLocality=7 TaintToleration=3 NodeResourcesLeastAllocated=1 "
                "NodeResourcesBalancedAllocation=1 NodeGroup=1 Extra=2"
            ),
        ),
        (  # what the profile disables stays so, unless the shadow enables it at that point
            (
                "{plugins: {multiPoint: {disabled: [{name: InTree}]}, "
                "score: {enabled: [{name: NodeAffinity}], disabled: [{name: Extra}]}}}"
            ),
            "NodeGroup",
            "NodeGroup=1 NodeAffinity=1",
        ),
        (  # nothing of the profile
            (
                "{plugins: {multiPoint: {disabled: [{name: '*'}]}, "
                "score: {disabled: [{name: '*'}], enabled: [{name: Extra}]}}}"
            ),
            "",
            "Extra=1",
        ),
    ],
)
def test_a_shadow_is_merged_into_its_profile(body: str, filtering: str, scoring: str) -> None:
    policy = shadowed(body)
    assert filters(policy) == filtering
    assert scores(policy) == scoring
    assert order(policy, "filter") == order(resolved(LIVE), "filter")
    assert order(policy, "score") == order(resolved(LIVE), "score")
    assert policy.policies["filter"].shadows[0].name == "moorage/shadow"
    assert policy.policies["bind"].shadows == ()
    assert policy.shadow_shares == {"moorage": 0.1}


def test_configuration_of_a_shadow_takes_the_place_of_that_of_its_profile() -> None:
    policy = shadowed("{pluginConfig: [{name: NodeGroup, args: {limit: 9}, timeBudget: 3s}]}")
    (live,) = [p for p in policy.policies["filter"].profiles[0].plugins if p.name == "NodeGroup"]
    (shadow,) = [p for p in policy.policies["filter"].shadows[0].plugins if p.name == "NodeGroup"]
    assert live.args == {"nodeLabel": "team", "limit": 2}
    assert shadow.args == {"limit": 9}
    assert shadow.time_budget_seconds == 3
    assert shadow.path == "p.yaml:8: profiles[0].shadow.pluginConfig[0].args"


def test_what_is_shown_has_the_same_effect() -> None:
    policy = shadowed(
        "{plugins: {multiPoint: {disabled: [{name: NodeGroup}]}, "
        "score: {enabled: [{name: Extra, weight: 5}]}}, maxShare: 2.5%}"
    )
    again = resolve(parse(policy.to_yaml(), "shown"), CATALOGUE)
    assert again.revision != resolved(LIVE).revision
    assert again.to_yaml() == policy.to_yaml()
    assert (filters(again), scores(again)) == (filters(policy), scores(policy))
    assert again.shadow_shares == {"moorage": 0.025}
