"""Policies in the documentation are valid, and do what is said about them."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cli.config.policies import choose_policy
from moorage.errors import ConfigurationError
from moorage_host.policy import KIND, ResolvedPolicy
from moorage_host.policy.document import (
    ConfiguredPlugin,
    ConfiguredProfile,
    DisabledPlugin,
    MoorageConfiguration,
    PluginConfig,
    Plugins,
    Shadow,
)
from tools.docs.pages import DOCS, Block, blocks

POLICIES = [block for block in blocks("yaml") if f"kind: {KIND}" in block.text]
MISTAKEN = [block for block in POLICIES if block.text.startswith("# mistakes")]
VALID = [block for block in POLICIES if block not in MISTAKEN]
PAGE = (DOCS / "reference" / "policy.md").read_text()


def resolved(text: str, folder: Path) -> ResolvedPolicy:
    """Resolve a policy with the plugins of the documentation."""
    file = folder / "policy.yaml"
    file.write_text(text)
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    for block in blocks("python"):
        name = block.text.partition("\n")[0].removeprefix("# ")
        if not name.startswith("test_"):
            (plugins / name).write_text(block.text)
    return choose_policy(file, [plugins]).resolved


def merge_examples() -> Iterator[tuple[str, str, str]]:
    table = PAGE.partition("| `plugins` of a profile |")[2].partition("\n\n")[0]
    yield from re.findall(r"^\| `(\{.*\})` \| (.*?) ?\| (.*?) ?\|$", table, re.M)


@pytest.mark.parametrize("block", VALID, ids=str)
def test_a_policy_is_valid_and_has_no_warnings(block: Block, tmp_path: Path) -> None:
    assert resolved(block.text, tmp_path).warnings == ()


@pytest.mark.parametrize("block", MISTAKEN, ids=str)
def test_mistakes_are_answered_as_shown(block: Block, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        choose_policy(_written(block.text, tmp_path), ())
    answer = str(caught.value).replace(f"{tmp_path}/", "")
    assert f"```text\n{answer}\n```" in block.page.read_text()


def _written(text: str, folder: Path) -> Path:
    file = folder / "policy.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(("plugins", "filters", "scores"), list(merge_examples()))
def test_sets_are_merged_as_shown(plugins: str, filters: str, scores: str, tmp_path: Path) -> None:
    text = f"apiVersion: moorage.io/v1alpha1\nkind: {KIND}\nprofiles: [{{plugins: {plugins}}}]\n"
    policies = choose_policy(_written(text, tmp_path), ()).resolved.policies
    (filtering,), (scoring,) = policies["filter"].profiles, policies["score"].profiles
    assert ", ".join(plugin.name for plugin in filtering.plugins) == filters
    assert ", ".join(f"{plugin.name} {plugin.weight}" for plugin in scoring.plugins) == scores


def test_there_are_examples_of_merging() -> None:
    assert len(list(merge_examples())) >= 5


def test_every_field_is_in_the_reference() -> None:
    table = PAGE.partition("\n## Fields\n")[2].partition("\nLimits:")[0]
    expected = {
        *_names(MoorageConfiguration),
        *(
            f"profiles[].{name}"
            for name in _names(ConfiguredProfile)
            if name not in ("plugins", "shadow")
        ),
        *(f"profiles[].plugins.{point}" for point in _names(Plugins)),
        *(f"profiles[].shadow.{name}" for name in _names(Shadow)),
        *(f"profiles[].pluginConfig[].{name}" for name in _names(PluginConfig)),
        *(f".enabled[].{name}" for name in _names(ConfiguredPlugin)),
        *(f".disabled[].{name}" for name in _names(DisabledPlugin)),
    } - {"profiles[].pluginConfig"}
    fields = re.findall(r"^\| (?:\*plugin set\*)?`([^`]+)` \|", table, re.M)
    assert set(fields) == expected


def _names(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]
