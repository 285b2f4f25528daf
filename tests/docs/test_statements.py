"""What tables written by hand say about messages, codes and limits is what the code does."""

import json
import re
from typing import Any, get_args

import msgspec
import pytest
import yaml
from google.protobuf.descriptor import ServiceDescriptor

from cli.assistant.bounds import ANSWER_BYTES, TEXT
from cli.assistant.server import AT_ONCE, SECONDS, WAITING, Tools
from gateway.binding.binding import REFUSALS
from gateway.cluster.endings import Restart, WatchLimits
from gateway.cycle.decision import UNKNOWN_NODE, Decision, DecisionItem, Outcome, PluginRecord
from gateway.decisions.nodes import NodeItem
from gateway.edge.edge import INTERNAL, NOT_UNDERSTOOD, TOO_SLOW
from gateway.edge.metrics import Result, Verb
from gateway.settings import GatewaySettings
from moorage.execution import overruns
from moorage.execution.enabled import BY_HAND, LOAD_SECONDS, STOP_SECONDS
from moorage.plugin.base import MAX_NOTE_LENGTH
from moorage.plugin.values import DEFAULT_TIME_BUDGET, MAX_TIME_BUDGET
from moorage.v1 import binder_pb2, filter_pb2, replica_pb2, scorer_pb2
from moorage_host.plugins.replica import NODE_SECONDS, STEP_SECONDS
from moorage_host.plugins.threads import BUSY, LONGEST_SECONDS
from moorage_host.policy.merge import default_failure_policy
from moorage_host.rpc.serve import STUCK_SECONDS
from sandbox.apiserver.faults import Fault
from services.binder.binding.attempt import FINAL
from services.binder.binding.outcomes import BindReason
from services.binder.wire import CODES
from tools.docs.pages import DOCS, ROOT, blocks


def page(name: str) -> str:
    return (DOCS / name).read_text()


def source(*folders: str) -> str:
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return "\n".join(file.read_text() for file in files)


def test_the_bounds_of_answers_to_assistants_are_those_of_the_code() -> None:
    text = page("how-to/operate/ask.md")
    for number in (f"{ANSWER_BYTES:,} bytes", f"{TEXT:,} characters", f"{SECONDS:g} seconds"):
        assert number in text
    assert (AT_ONCE, f"{WAITING} wait" in text) == (4, True)
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == {
        name for name in vars(Tools) if not name.startswith("_")
    }


@pytest.mark.parametrize("reason", list(BindReason), ids=lambda reason: reason.value)
def test_each_refusal_of_the_binder_is_listed_with_its_code(reason: BindReason) -> None:
    assert re.search(
        rf"^\| .+ \| `{reason.value}` \| `{CODES[reason].name}` \|",
        page("reference/services/binder.md"),
        re.M,
    )


def test_the_binder_page_lists_the_final_statuses() -> None:
    assert f'"{", ".join(map(str, sorted(FINAL)))}"' in page("reference/services/binder.md")


def test_the_codes_after_which_a_pod_is_not_on_its_node_are_named() -> None:
    sentence = (
        page("reference/services/binder.md").partition("\nAfter `")[2].partition(" the gateway")[0]
    )
    assert set(re.findall(r"[A-Z_]{6,}", sentence)) == {code.name for code in REFUSALS}


def test_the_texts_that_users_read_are_listed() -> None:
    listed = page("how-to/operate/troubleshoot.md")
    for text in (TOO_SLOW, INTERNAL, NOT_UNDERSTOOD.strip(), UNKNOWN_NODE):
        assert text in listed
    for text in re.findall(r'CallFailedError\("(Moorage [^"]+)"', source("gateway")):
        assert text in listed


@pytest.mark.parametrize(
    "text",
    re.findall(r"`((?:filter|binder) service[^`]*)`", page("how-to/operate/troubleshoot.md")),
)
def test_a_text_about_a_service_is_one_of_the_gateway(text: str) -> None:
    words = text.partition(" service")[2].strip(" :.")
    code = source("gateway/replicas", "gateway") + source("sdk/moorage", "sdk/moorage_host")
    for part in filter(None, re.split(r"[A-Z]{3,}|: ?\.*|\.\.\.", words)):
        assert part.strip() in code, part


def test_log_events_of_the_gateway_exist() -> None:
    table = page("how-to/operate/troubleshoot.md").partition("| `event` | means |")[2]
    events = re.findall(r"`([^`]+)`", "\n".join(row.split("|")[1] for row in _rows(table)))
    code = source("gateway", "sdk/moorage_host/kube")
    assert len(events) > 5
    assert [event for event in events if f'"{event}"' not in code] == []


def test_readiness_checks_are_listed() -> None:
    method = (ROOT / "gateway/app.py").read_text().partition("def checks(self)")[2]
    checks = re.search(r"return \{\n(.*?)\n        \}", method, re.S)
    assert checks is not None
    names = ["serving", *re.findall(r'"(\w+)":', checks[1])]
    section = (
        page("reference/services/gateway.md").partition("\n## Readiness\n")[2].partition("\n## ")[0]
    )
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == names


def test_the_values_of_labels_are_listed() -> None:
    text = page("reference/metrics.md")
    for value in (*get_args(Verb), *get_args(Result), *Restart):
        assert f"`{value}`" in text


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("reference/services/filter.md", filter_pb2.DESCRIPTOR.services_by_name["FilterService"]),
        ("reference/services/scorer.md", scorer_pb2.DESCRIPTOR.services_by_name["ScorerService"]),
        ("reference/services/filter.md", replica_pb2.DESCRIPTOR.services_by_name["ReplicaService"]),
        ("reference/services/binder.md", binder_pb2.DESCRIPTOR.services_by_name["BinderService"]),
    ],
)
def test_the_methods_of_a_service_are_listed(name: str, service: ServiceDescriptor) -> None:
    for method in service.methods:
        assert f"`{method.name}`" in page(name)


def test_methods_that_commands_call_exist() -> None:
    for block in blocks("sh"):
        for service, method in re.findall(r"moorage\.v1\.(\w+)/(\w+)", block.text):
            modules = {
                "ReplicaService": replica_pb2,
                "FilterService": filter_pb2,
                "ScorerService": scorer_pb2,
                "BinderService": binder_pb2,
            }
            described = modules[service].DESCRIPTOR.services_by_name[service]
            assert method in described.methods_by_name


def test_the_fields_of_a_fault_are_listed_with_their_defaults() -> None:
    table = (
        page("reference/services/sandbox.md")
        .partition("| field of a fault |")[2]
        .partition("\n\n")[0]
    )
    rows = {row.split("|")[1].strip(" `"): row.split("|")[2].strip(" `") for row in _rows(table)}
    fields = {field.encode_name: field.default for field in msgspec.structs.fields(Fault)}
    assert rows.keys() == fields.keys()
    for name, default in fields.items():
        shown = "" if default in (None, "") else str(default).lower().removesuffix(".0")
        assert rows[name] == shown


def test_the_limits_of_plugins_are_as_said() -> None:
    text = " ".join(page("how-to/plugins/more.md").split())
    assert f"and so on, up to {overruns.LONGEST_WAIT:g}." in text
    share, free = f"{overruns.SHARE:.0%}", f"{overruns.FREE_SECONDS:g}"
    assert f"have taken {free} seconds in all, its pods" in text
    assert f"get {share} of the time; after {overruns.MOST_SECONDS:g} seconds, all pods" in text
    assert f"pods of {overruns.NAMESPACES} namespaces overran" in text
    assert f"suspended for {overruns.SUSPENSION_SECONDS:g} seconds for everybody" in text
    assert overruns.LESS == 0.25, "a quarter of the time budget"
    assert f"after {STUCK_SECONDS:g} seconds the process ends" in text
    assert f"gets {STEP_SECONDS:g} seconds and {1000 * NODE_SECONDS:g} ms for each node" in text
    assert f"taken {BUSY:g} of a processor for {LONGEST_SECONDS:g} seconds" in text
    assert BY_HAND == 0.5
    assert f"`start` may take {LOAD_SECONDS:g} seconds, `stop` {STOP_SECONDS:g}" in text
    steps = f"most steps {STEP_SECONDS:g} s, those that await {DEFAULT_TIME_BUDGET:g} s"
    assert steps in text
    assert f"The most is {MAX_TIME_BUDGET:g} seconds" in text
    assert f"one line of at most {MAX_NOTE_LENGTH} characters" in text
    defaults = [default_failure_policy(kind) for kind in ("filter", "score", "bind")]
    assert defaults == ["Abort", "Ignore", "Abort"]
    assert MAX_TIME_BUDGET == 60, "docs/reference/policy.md says at most 1m"


def test_the_limits_of_the_state_are_as_said() -> None:
    assert f"last {GatewaySettings().kept_changes:,} changes" in page("explanation/state.md")
    assert WatchLimits().silence == 120, "docs/explanation/state.md says 2 minutes"


def test_the_decision_that_is_explained_has_the_fields_of_one() -> None:
    decision, table, listed = (_without_comments(block.text) for block in blocks("jsonc"))
    shown = decision
    (attempt,) = shown["attempts"]
    (why,) = attempt.pop("why")
    assert attempt.pop("outcome") in get_args(Outcome)
    assert why.startswith(attempt.pop("reason").removesuffix("..."))
    best, second, _ = attempt["score"]["top"]
    prefers = f"{best['node']} to {second['node']}, {best['total']} to {second['total']}"
    assert why.startswith(f"Moorage prefers {prefers}: ImageLocality ")
    _check_fields(attempt, msgspec.to_builtins(msgspec.convert(attempt, Decision)))
    weights = [plugin["weight"] for plugin in best["plugins"]]
    points = [plugin["normalized"] * plugin["weight"] for plugin in best["plugins"]]
    assert best["total"] == pytest.approx(sum(points) / sum(weights))
    for item in table["items"]:
        _check_fields(item, msgspec.to_builtins(msgspec.convert(item, NodeItem)))
    for item in listed["items"]:
        _check_fields(item, msgspec.to_builtins(msgspec.convert(item, DecisionItem)))


def test_json_that_is_shown_can_be_read() -> None:
    shown = [json.loads(block.text) for block in blocks("json")]
    rejecting = next(each for each in shown if "rejected" in each and "plugin" in each)
    _check_fields(rejecting, msgspec.to_builtins(msgspec.convert(rejecting, PluginRecord)))


def test_the_readme_shows_every_pod_of_the_demonstration_on_a_node_of_it() -> None:
    shown = dict(re.findall(r"^default/(\S+) +(\S+) ", (ROOT / "README.md").read_text(), re.M))
    del shown["web"]  # the pod that the reader starts
    demo = ROOT / "deploy" / "demo"
    pods, nodes = (
        {each["metadata"]["name"] for each in yaml.safe_load_all((demo / file).read_text())}
        for file in ("pods.yaml", "nodes.yaml")
    )
    assert shown.keys() == pods
    assert set(shown.values()) <= nodes | {"pending"}


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ") and "| --" not in line]


def _without_comments(text: str) -> Any:
    text = re.sub(r"/\*.*?\*/", "", text)
    text = re.sub(r"//.*$", "", text, flags=re.M)
    return json.loads(re.sub(r",(\s*[\]}])", r"\1", text))


def _check_fields(shown: Any, known: Any) -> None:
    """Fail if something is shown that reading it loses."""
    if isinstance(shown, dict):
        assert shown.keys() - known.keys() <= {key for key in shown if not shown[key]}
        for key in shown.keys() & known.keys():
            _check_fields(shown[key], known[key])
    elif isinstance(shown, list):
        for one, other in zip(shown, known, strict=True):
            _check_fields(one, other)
