"""`moorage config extender`: the entry of kube-scheduler's configuration that a policy needs."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage_host.kube_scheduler import parse_configuration
from tests.cli.support import ROOT, invoked

HEADER = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"
KUBE_SCHEDULER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

PLUGINS = """\
from moorage import BindPlugin, FilterPlugin, ScorePlugin

class FreeSlice(FilterPlugin):
    managed_resources = ("example.com/gpu", "example.com/slice")
    def filter_node(self, pod, node):
        return None

class FullestCard(ScorePlugin):
    managed_resources = ("example.com/gpu",)
    def score_node(self, pod, node):
        return 0

class ClaimsCard(FilterPlugin):
    managed_resources = ("example.com/gpu",)
    def filter_node(self, pod, node):
        return None
    CLAIM

class MarksCard(BindPlugin):
    managed_resources = ("example.com/gpu",)
    async def pre_bind(self, binding):
        return None

class Packs(ScorePlugin):
    def score_node(self, pod, node):
        return node.requested.get("cpu", 0)

class Cards(ScorePlugin):
    managed_resources = ("example.com/gpu",)
    reads_placements = False
    def score_node(self, pod, node):
        return 0

class ByName(FilterPlugin):
    reads_placements = False
    def filter_node(self, pod, node):
        return None
"""
BIND = {"bind"}
CLAIM = "def wants_claim(self, pod):\n        return True"


moorage = partial(invoked, "config", "extender")


def printed(folder: Path, profiles: str, *arguments: object, header: str = HEADER) -> str:
    """Return what is printed for a policy with these profiles and the plugins above."""
    (folder / "policy.yaml").write_text(f"{header}profiles:\n{profiles}")
    (folder / "plugins.py").write_text(PLUGINS.replace("CLAIM", CLAIM))
    result = moorage(folder / "policy.yaml", "--plugin", folder / "plugins.py", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def entries(text: str) -> list[dict[str, Any]]:
    """Return the entries, after a reader that is as strict as kube-scheduler has read them."""
    parse_configuration(KUBE_SCHEDULER + text)
    found: list[dict[str, Any]] = yaml.safe_load(text)["extenders"]
    return found


def verbs(entry: dict[str, Any]) -> set[str]:
    return {key.removesuffix("Verb") for key in entry if key.endswith("Verb")}


def multi_point(*names: str) -> str:
    enabled = ", ".join(f"{{name: {name}}}" for name in names)
    return f"- plugins: {{multiPoint: {{enabled: [{enabled}]}}}}\n"


@pytest.mark.parametrize(
    ("plugins", "needed"),
    [
        (("ByName",), {"filter", "preempt"}),
        (("ImageLocality",), {"prioritize"}),
        (("ByName", "ImageLocality"), {"filter", "prioritize", "preempt"}),
        (("DecisionAnnotation",), {"bind"}),
        (("OneNodePerPipelineRun",), {"filter", "preempt", "bind"}),  # it claims nodes
        (("Packs",), {"prioritize", "bind"}),  # it reads what pods request
        (("InTree",), {"filter", "prioritize", "preempt", "bind"}),
        (("NodeResourcesFit", "TaintToleration"), {"filter", "prioritize", "preempt"}),
    ],
)
def test_an_entry_has_the_verbs_that_plugins_need(
    tmp_path: Path, plugins: tuple[str, ...], needed: set[str]
) -> None:
    found = entries(printed(tmp_path, multi_point(*plugins)))
    assert [verbs(entry) for entry in found] == list(filter(None, (needed - BIND, needed & BIND)))
    for entry in found:
        assert ("weight" in entry) == ("prioritizeVerb" in entry)
        assert (entry["nodeCacheCapable"], entry["ignorable"]) == (True, False)


@pytest.mark.parametrize(
    ("plugins", "reason"),
    [
        (("ByName", "Packs"), "For Packs: it reads which pods are on nodes."),
        (("Packs", "FullestCard"), "For Packs, FullestCard: they read which pods are on nodes."),
        (
            ("Packs", "DecisionAnnotation"),
            "For Packs: it reads which pods are on nodes; DecisionAnnotation: it acts on binds.",
        ),
    ],
)
def test_the_entry_gives_the_reason_for_binds(
    tmp_path: Path, plugins: tuple[str, ...], reason: str
) -> None:
    text = printed(tmp_path, multi_point(*plugins))
    assert reason in " ".join(text.replace("#", "").split())


def test_a_policy_without_plugins_needs_no_entry(tmp_path: Path) -> None:
    text = printed(tmp_path, "- schedulerName: moorage\n")
    assert entries(text) == []
    assert "No profile enables a plugin" in text


@pytest.mark.parametrize(("scale", "weight"), [(10, 141), (100, 15), (1000, 2)])
def test_a_lead_of_a_tenth_beats_all_in_tree_scores(
    tmp_path: Path, scale: int, weight: int
) -> None:
    text = printed(tmp_path, multi_point("ImageLocality"), header=f"{HEADER}scoreScale: {scale}\n")
    (entry,) = entries(text)
    assert entry["weight"] == weight
    shown = " ".join(text.replace("#", "").split())
    assert f"at most {scale * weight * 10:,} beside 1,400" in shown
    assert f"a lead of {scale // 10} of {scale} always wins" in shown
    assert scale // 10 * weight * 10 > 1400


@pytest.mark.parametrize(
    ("plugins", "resources"),
    [
        (("FreeSlice",), ["example.com/gpu", "example.com/slice"]),
        (("FullestCard", "MarksCard"), ["example.com/gpu"]),
        (("FreeSlice", "ClaimsCard"), ["example.com/gpu", "example.com/slice"]),
        (("Cards", "ByName"), []),  # one of them concerns all pods
    ],
)
def test_only_pods_that_any_plugin_concerns_are_sent(
    tmp_path: Path, plugins: tuple[str, ...], resources: list[str]
) -> None:
    (entry,) = entries(printed(tmp_path, multi_point(*plugins)))
    managed = entry.get("managedResources", [])
    assert managed == [{"name": name} for name in resources]


def test_binds_that_concern_other_pods_have_an_entry_of_their_own(tmp_path: Path) -> None:
    cards, binds = entries(printed(tmp_path, multi_point("FullestCard", "DecisionAnnotation")))
    assert (verbs(cards), cards["managedResources"]) == (
        {"prioritize"},
        [{"name": "example.com/gpu"}],
    )
    assert (verbs(binds), "managedResources" in binds) == ({"bind"}, False)
    names, cards = entries(printed(tmp_path, multi_point("ByName", "MarksCard")))
    assert (verbs(names), "managedResources" in names) == ({"filter", "preempt"}, False)
    assert (verbs(cards), cards["managedResources"]) == ({"bind"}, [{"name": "example.com/gpu"}])


def test_binds_are_never_ignorable(tmp_path: Path) -> None:
    text = printed(tmp_path, multi_point("ByName", "DecisionAnnotation"), "--ignorable")
    cycles, binds = entries(text)
    assert (verbs(cycles), cycles["ignorable"]) == ({"filter", "preempt"}, True)
    assert (verbs(binds), binds["ignorable"]) == ({"bind"}, False)
    # kube-scheduler refuses a resource that two entries have.
    cycles, binds = entries(printed(tmp_path, multi_point("ClaimsCard"), "--ignorable"))
    assert cycles["managedResources"] == [{"name": "example.com/gpu"}]
    assert "managedResources" not in binds


def test_binds_for_plugins_that_read_placements_may_fall_back_to_kube_schedulers(
    tmp_path: Path,
) -> None:
    cycles, binds = entries(printed(tmp_path, multi_point("ByName", "Packs"), "--ignorable"))
    assert (verbs(cycles), verbs(binds)) == ({"filter", "prioritize", "preempt"}, {"bind"})
    assert (cycles["ignorable"], binds["ignorable"]) == (True, True)


def test_the_url_is_taken_as_it_is_given(tmp_path: Path) -> None:
    (entry,) = entries(printed(tmp_path, multi_point("ByName"), "--url", "https://10.0.0.1:1/x"))
    assert (entry["urlPrefix"], entry["enableHTTPS"]) == ("https://10.0.0.1:1/x", True)
    result = moorage(ROOT / "deploy/files/policy.yaml", "--url", "gateway:8888")
    assert result.exit_code == 2
    assert "is not of the form http://HOST:PORT" in result.stderr


def test_mistakes_and_notes_are_those_of_validate(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{HEADER}profiles:\n{multi_point('ImageLocalty')}")
    result = moorage(file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean `ImageLocality`?" in result.stderr
    file.write_text(f"{HEADER}profiles:\n- pluginConfig: [{{name: NodeGroup}}]\n")
    assert "is configured but not enabled" in moorage(file).stderr


def test_the_shipped_configuration_has_the_entry_of_the_shipped_policy() -> None:
    files = ROOT / "deploy/files"
    shipped = yaml.safe_load((files / "kube-scheduler-config.yaml").read_text())
    assert entries(moorage(files / "policy.yaml").stdout) == shipped["extenders"]
