"""The shadow of a profile: merged into its plugins, refused where it makes no sense."""

import pytest

from moorage.errors import ConfigurationError
from moorage_host.policy import ResolvedPolicy, parse, resolve
from tests.host.policy.test_resolve import CATALOGUE, HEADER, IN_TREE_FILTERS, order, resolved

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


def mistakes(body: str) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        shadowed(body)
    return str(error.value).splitlines()


def test_an_empty_shadow_runs_what_its_profile_runs() -> None:
    policy = shadowed("{}")
    assert filters(policy) == order(policy, "filter")
    assert scores(policy) == order(policy, "score")
    assert policy.policies["filter"].shadows[0].name == "moorage/shadow"
    assert policy.policies["bind"].shadows == ()
    assert policy.shadow_shares == {"moorage": 0.1}


def test_without_a_shadow_there_is_none() -> None:
    policy = resolved(LIVE)
    assert policy.shadow_shares == {}
    assert not any(each.shadows for each in policy.policies.values())


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
        (  # without one, at all points
            "{plugins: {multiPoint: {disabled: [{name: NodeGroup}]}}}",
            IN_TREE_FILTERS,
            (
                "TaintToleration=3 NodeResourcesLeastAllocated=1 NodeResourcesBalancedAllocation=1 "
                "ImageLocality=1 Extra=2"
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


def test_what_a_profile_enables_beside_a_star_stays_in_its_shadow() -> None:
    live = "profiles:\n- plugins: {score: {enabled: [{name: Extra}], disabled: [{name: '*'}]}}\n"
    assert scores(shadowed("{}", live)) == "Extra=1"


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


def test_the_revision_depends_on_the_share() -> None:
    assert shadowed("{maxShare: 1%}").revision != shadowed("{maxShare: 2%}").revision


def test_mistakes_have_their_line_and_their_path() -> None:
    where = "p.yaml:8: profiles[0].shadow"
    assert mistakes("{plugins: {bind: {}}}") == [
        f"{where}.plugins.bind: unknown field `bind`: a shadow never binds"
    ]
    assert mistakes("{pluginConfg: []}") == [
        f"{where}.pluginConfg: unknown field `pluginConfg`, did you mean `pluginConfig`?"
    ]
    assert mistakes("{plugins: {multiPoint: {enabled: [{name: Webhook}]}}}") == [
        (
            f"{where}.plugins.multiPoint.enabled[0].name: "
            "plugin `Webhook` acts on binds only, and a shadow never binds"
        )
    ]
    (unknown,) = mistakes("{plugins: {score: {enabled: [{name: Extr}]}}}")
    assert unknown.startswith(f"{where}.plugins.score.enabled[0].name: unknown plugin `Extr`")
    assert unknown.endswith("did you mean `Extra`?")
    (argument,) = mistakes("{pluginConfig: [{name: NodeGroup, args: {limit: 0}}]}")
    assert argument.startswith(f"{where}.pluginConfig[0].args.limit: expected int >= 1")


@pytest.mark.parametrize("share", ["10", "-1%", "100.1%", "5.123%", "ten%", "[]"])
def test_a_share_is_a_percentage(share: str) -> None:
    (mistake,) = mistakes(f"{{maxShare: {share}}}")
    assert mistake.startswith("p.yaml:8: profiles[0].shadow.maxShare: expected a percentage such")


def test_no_profile_has_the_name_of_a_shadow() -> None:
    body = "profiles:\n- {schedulerName: a, shadow: {}}\n- {schedulerName: a/shadow}\n"
    with pytest.raises(ConfigurationError) as error:
        parse(HEADER + body, "p.yaml")
    assert str(error.value) == (
        "p.yaml:5: profiles[1].schedulerName: a shadow has this name: choose another one"
    )


def test_disabling_what_the_profile_enables_is_not_warned_of() -> None:
    body = "{plugins: {multiPoint: {disabled: [{name: NodeGroup}, {name: InTree}]}}}"
    assert shadowed(body).warnings == ()
    (warning,) = shadowed("{plugins: {score: {disabled: [{name: Webhook}]}}}").warnings
    assert "profiles[0].shadow.plugins.score.disabled[0].name: nothing to disable" in warning
