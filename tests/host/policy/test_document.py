from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import ConfigurationError
from moorage_host.policy import Document, default_document, parse
from moorage_host.policy import read as read_file

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"


def read(body: str) -> Document:
    return parse(HEADER + body, "p.yaml")


def config(fields: str) -> str:
    return f"profiles:\n- pluginConfig:\n  - name: A\n    {fields}\n"


def test_a_full_document_is_read() -> None:
    document = read("""
scoreScale: 1000
profiles:
- schedulerName: batch
  plugins:
    multiPoint: {enabled: [{name: A, weight: 2}], disabled: [{name: "*"}]}
    score: {enabled: [{name: B}]}
  pluginConfig:
  - name: A
    args: {label: "on", deep: {x: [1, 2.5, null, true]}}
    failurePolicy: Ignore
    timeBudget: 1m
- schedulerName: web
""")
    configuration = document.configuration
    assert configuration.score_scale == 1000
    batch, web = configuration.profiles
    assert (batch.scheduler_name, web.scheduler_name) == ("batch", "web")
    assert batch.plugins.multi_point.enabled[0].weight == 2
    assert batch.plugins.multi_point.disabled[0].name == "*"
    assert batch.plugins.score.enabled[0].weight == 0
    (a,) = batch.plugin_config
    assert a.args == {"label": "on", "deep": {"x": [1, 2.5, None, True]}}
    assert (a.failure_policy, a.time_budget_seconds) == ("Ignore", 60.0)


def test_json_is_read_too() -> None:
    text = (
        '{"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration",\n "profiles": [{'
        '"pluginConfig": [{"name": "A", "args": {"x": 1e3, "y": "\\u00e9"}}]}]}'
    )
    (profile,) = parse(text, "p.json").configuration.profiles
    assert profile.plugin_config[0].args == {"x": 1000.0, "y": "é"}


def test_a_single_profile_may_go_without_a_name() -> None:
    assert read("profiles:\n- {}\n").configuration.profiles[0].scheduler_name == "moorage"


def test_fields_with_nothing_after_the_colon_are_absent() -> None:
    document = read("profiles:\n- plugins:\n    score:\n      enabled:\n  pluginConfig:\n")
    assert document.configuration.profiles[0].plugins.score.enabled == ()


def test_a_null_among_the_arguments_is_kept() -> None:
    (profile,) = read(config("args: {limit: null}")).configuration.profiles
    assert profile.plugin_config[0].args == {"limit": None}


def test_an_alias_stands_for_the_whole_value() -> None:
    first, second = read("""profiles:
- schedulerName: a
  plugins: &common {score: {enabled: [{name: A}]}}
- schedulerName: b
  plugins: *common
""").configuration.profiles
    assert first.plugins == second.plugins


def test_dates_and_quoted_words_stay_text() -> None:
    (profile,) = read(config("args: {a: 2020-01-01, b: 'no', c: \"017\"}")).configuration.profiles
    assert profile.plugin_config[0].args == {"a": "2020-01-01", "b": "no", "c": "017"}


@given(st.text(alphabet=st.sampled_from("ab:{}[]-,*&!|>'\"\n\t #?%<~0.9"), max_size=40))
def test_no_text_fails_in_another_way_than_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse(text, "p.yaml")


@given(st.text(alphabet=st.sampled_from("ab:{}[]-,*&!|>'\"\n\t #?%<~0.9"), max_size=40))
def test_no_arguments_fail_in_another_way_than_a_configuration_error(text: str) -> None:
    try:
        document = read(config(f"args: {{a: {text} }}"))
    except ConfigurationError:
        return
    assert document.configuration.profiles[0].plugin_config[0].args is not None


def test_a_file_is_read_and_named_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEADER + "profile: []\n")
    with pytest.raises(ConfigurationError, match=r"policy\.yaml:3: profile: unknown field"):
        parse(read_file(path), str(path))
    path.write_text(HEADER)
    assert parse(read_file(path), str(path)).source == str(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    with pytest.raises(ConfigurationError, match=r"policy\.yaml:1: cannot be read: No such file"):
        read_file(path)
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(
        ConfigurationError, match=r"policy\.yaml:1: cannot be read: it is not UTF-8"
    ):
        read_file(path)
    path.write_bytes(b"#" * 2_000_000)
    with pytest.raises(ConfigurationError, match=r"policy\.yaml:1: larger than 1048576"):
        parse(read_file(path), str(path))


def test_without_a_file_there_is_a_default_document() -> None:
    assert default_document().configuration.profiles == ()
    assert default_document().configuration.score_scale == 100
