"""What does not fit the plugins that exist is refused or warned of, with its place."""

from typing import Annotated

import msgspec
import pytest

from moorage.errors import ConfigurationError
from moorage_host.policy import Catalogue, PluginInfo, ResolvedPolicy, parse, resolve

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"
ORIGINS = "(plugins come from: built-in, nodegroup 1.2)"
SETS = "profiles[0].plugins"


class NodeGroupArgs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    node_label: str = "group"
    limit: Annotated[int, msgspec.Meta(ge=1)] = 5


CATALOGUE = Catalogue(
    [
        PluginInfo(name="NodeName", points=frozenset({"Filter"})),
        PluginInfo(name="ImageLocality", points=frozenset({"PreScore", "Score"})),
        PluginInfo(
            name="NodeGroup",
            points=frozenset({"Filter", "Score", "NormalizeScore"}),
            origin="nodegroup 1.2",
            args_schema=msgspec.json.schema(NodeGroupArgs),
        ),
    ]
)
CONFIGURED = """profiles:
- pluginConfig:
  - name: NodeGroup
    args: {limit: 7}
"""


def resolved(body: str, catalogue: Catalogue = CATALOGUE) -> ResolvedPolicy:
    return resolve(parse(HEADER + body, "p.yaml"), catalogue)


def mistakes(body: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        resolved(body)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (
            "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: NodeGrup\n",
            [
                (
                    f"p.yaml:7: {SETS}.score.enabled[0].name: unknown plugin `NodeGrup` {ORIGINS}, "
                    "did you mean `NodeGroup`?"
                )
            ],
        ),
        (
            "profiles:\n- plugins: {filter: {enabled: [{name: ImageLocality}]}}\n",
            [
                (
                    f"p.yaml:4: {SETS}.filter.enabled[0].name: "
                    "plugin `ImageLocality` has no filter part: enable it at score"
                )
            ],
        ),
        (
            "profiles:\n- plugins: {bind: {enabled: [{name: NodeGroup}]}}\n",
            [
                (
                    f"p.yaml:4: {SETS}.bind.enabled[0].name: "
                    "plugin `NodeGroup` has no bind part: enable it at filter or score"
                )
            ],
        ),
        (
            "profiles:\n- pluginConfig:\n  - name: Xyzzy\n",
            [f"p.yaml:5: profiles[0].pluginConfig[0].name: unknown plugin `Xyzzy` {ORIGINS}"],
        ),
        (
            CONFIGURED.replace("limit: 7", "node_label: a,\n      limit: 0"),
            [
                (
                    "p.yaml:6: profiles[0].pluginConfig[0].args.node_label: "
                    "unknown field `node_label`, did you mean `nodeLabel`?"
                ),
                ("p.yaml:7: profiles[0].pluginConfig[0].args.limit: expected int >= 1, got int 0"),
            ],
        ),
        (
            (
                "profiles:\n- plugins:\n    multiPoint:\n      enabled:\n      - name: A1234\n"
                "      - name: B5678\n"
            ),
            [
                f"p.yaml:7: {SETS}.multiPoint.enabled[0].name: unknown plugin `A1234` {ORIGINS}",
                f"p.yaml:8: {SETS}.multiPoint.enabled[1].name: unknown plugin `B5678` {ORIGINS}",
            ],
        ),
    ],
)
def test_all_names_that_do_not_fit_are_told(body: str, messages: list[str]) -> None:
    assert mistakes(body) == messages


@pytest.mark.parametrize(
    ("sets", "place", "message"),
    [
        (
            "{filter: {enabled: [{name: InTree}]}}",
            "filter.enabled[0].name",
            "`InTree` may only be enabled in multiPoint",
        ),
        (
            "{score: {enabled: [{name: InTree}]}}",
            "score.enabled[0].name",
            "`InTree` may only be enabled in multiPoint",
        ),
        (
            "{bind: {enabled: [{name: InTree}]}}",
            "bind.enabled[0].name",
            "`InTree` may only be enabled in multiPoint",
        ),
        (
            "{multiPoint: {enabled: [{name: InTree, weight: 2}]}}",
            "multiPoint.enabled[0].weight",
            "`InTree` has no weight: enable its score plugins with other weights",
        ),
        (
            "{multiPoint: {disabled: [{name: InTree}]}}",
            "multiPoint.disabled[0].name",
            "`InTree` cannot be disabled, as nothing enables it by default",
        ),
        (
            "{multiPoint: {enabled: [{name: InTree}, {name: InTree}]}}",
            "multiPoint.enabled[1].name",
            f'"InTree" is there already, at {SETS}.multiPoint.enabled[0].name',
        ),
        (
            "{multiPoint: {enabled: [{name: Intree}]}}",
            "multiPoint.enabled[0].name",
            f"unknown plugin `Intree` {ORIGINS}, did you mean `InTree`?",
        ),
        (  # where it may not be enabled, it is not suggested
            "{filter: {enabled: [{name: Intree}]}}",
            "filter.enabled[0].name",
            f"unknown plugin `Intree` {ORIGINS}",
        ),
    ],
)
def test_in_tree_where_it_means_nothing_is_refused(sets: str, place: str, message: str) -> None:
    assert mistakes(f"profiles:\n- plugins: {sets}\n") == [f"p.yaml:4: {SETS}.{place}: {message}"]


def test_in_tree_has_no_configuration() -> None:
    problem = "`InTree` is a list of plugins: configure each by its own name"
    assert mistakes("profiles:\n- pluginConfig:\n  - name: InTree\n") == [
        f"p.yaml:5: profiles[0].pluginConfig[0].name: {problem}"
    ]


def test_without_any_service_an_unknown_plugin_says_so() -> None:
    with pytest.raises(ConfigurationError, match=r"come from: nowhere, no service runs"):
        resolved("profiles:\n- pluginConfig: [{name: A}]\n", Catalogue([]))


def test_what_has_no_effect_is_allowed_and_warned_of() -> None:
    policy = resolved("""profiles:
- plugins:
    multiPoint: {disabled: [{name: VolumeBinding}, {name: ImageLocalty}, {name: "*"}]}
    filter: {enabled: [{name: NodeName, weight: 3}]}
  pluginConfig:
  - name: NodeGroup
""")
    disabled = f"p.yaml:5: {SETS}.multiPoint.disabled"
    assert policy.warnings == (
        f"{disabled}[0].name: nothing to disable: unknown plugin `VolumeBinding` {ORIGINS}",
        (
            f"{disabled}[1].name: nothing to disable: unknown plugin `ImageLocalty` {ORIGINS}, "
            "did you mean `ImageLocality`?"
        ),
        f"p.yaml:6: {SETS}.filter.enabled[0].weight: only score plugins have a weight",
        (
            "p.yaml:8: profiles[0].pluginConfig[0].name: plugin `NodeGroup` is configured "
            "but not enabled"
        ),
    )


@pytest.mark.parametrize(
    ("sets", "place", "message"),
    [
        (
            "{multiPoint: {disabled: [{name: NodeName}]}}",
            "multiPoint.disabled[0].name",
            (
                "nothing to disable: only `InTree` could enable `NodeName`, "
                "and multiPoint does not enable `InTree`"
            ),
        ),
        (
            "{filter: {disabled: [{name: NodeName}]}}",
            "filter.disabled[0].name",
            "nothing to disable: multiPoint does not enable `NodeName`",
        ),
        (
            "{multiPoint: {enabled: [{name: InTree}], disabled: [{name: '*'}]}}",
            "multiPoint.enabled[0].name",
            "`InTree` has no effect: `*` is disabled",
        ),
    ],
)
def test_a_set_that_has_no_effect_is_warned_of(sets: str, place: str, message: str) -> None:
    (warning,) = resolved(f"profiles:\n- plugins: {sets}\n").warnings
    assert warning == f"p.yaml:4: {SETS}.{place}: {message}"


@pytest.mark.parametrize(
    "sets",
    [
        "{multiPoint: {enabled: [{name: InTree}], disabled: [{name: NodeName}]}}",
        "{multiPoint: {enabled: [{name: InTree}]}, filter: {disabled: [{name: NodeName}]}}",
        "{multiPoint: {enabled: [{name: NodeGroup}]}, score: {disabled: [{name: NodeGroup}]}}",
    ],
)
def test_disabling_what_runs_is_not_warned_of(sets: str) -> None:
    assert resolved(f"profiles:\n- plugins: {sets}\n").warnings == ()


def test_a_policy_in_which_everything_has_an_effect_gives_no_warning() -> None:
    body = "profiles:\n- plugins: {score: {enabled: [{name: NodeGroup, weight: 2}]}}\n"
    assert resolved(body).warnings == ()
