"""Files that are made to cost a lot are refused with a sentence, before they are taken in."""

import asyncio
import json
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.legacy.policy import read_policy
from cli.shared.gateway.options import current_namespace
from cli.shared.manifests import read_located
from cli.up.kubeconfig import _is_ours
from moorage.errors import ConfigurationError
from moorage.files import MAX_OBJECT, MAX_VALUES, MAX_YAML
from moorage_host.kube import connect
from moorage_host.kube_scheduler.configuration.reading import load_configuration
from moorage_host.policy import document
from services.filter.plugins.maintenance_windows import MaintenanceWindows
from services.scorer.plugins.node_cost import NodeCost

READERS: dict[str, Callable[[Path], object]] = {
    "policy": lambda path: document.parse(document.read(path), str(path)),
    "manifests": lambda path: list(read_located(path)),
    "kubeconfig": lambda path: asyncio.run(connect(path)),
    "KubeSchedulerConfiguration": lambda path: load_configuration(path),
    "Policy of kube-scheduler": read_policy,
    "settings of a filter": lambda path: asyncio.run(
        MaintenanceWindows(MaintenanceWindows.Args(file=str(path))).start()
    ),
    "settings of a scorer": lambda path: asyncio.run(
        NodeCost(NodeCost.Args(file=str(path))).start()
    ),
}

TWICE = "is there twice|is of kind Pod"
"""Or the kind is refused first, where only one is expected."""

FILES = {
    "aliases that multiply": (
        "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}' if i else 'x'] * 9)}]\n" for i in range(9)),
        "aliases make more than",
    ),
    "aliases that nest": (
        "".join(f"a{i}: &a{i} [{f'*a{i - 1}' if i else 'x'}]\n" for i in range(100)), "nested",
    ),
    "an alias within itself": ("a: &a\n  b: *a\n", "within what it names|undefined alias"),
    "deep flow": (f"a: {'[' * 10_000}{']' * 10_000}", "nested"),
    "deep block": ("".join(f"{' ' * i}a:\n" for i in range(1000)), "nested"),
    "deep JSON": ('{"a": ' + "[" * 10_000 + "]" * 10_000 + "}", "nested|JSON"),
    "JSON of 65 levels": ('{"a": ' + "[" * 64 + "]" * 64 + "}", "nested"),
    "many values": ("- a\n" * (MAX_VALUES + 1), "more than|larger than"),
    "many values of JSON": ('{"a": [' + "0," * MAX_VALUES + "0]}", "more than|larger than"),
    "a wrong tag": ("a: !!bool maybe\n", "not YAML|maybe is not !!bool|apiVersion"),
    "a key twice": ("kind: Pod\nmetadata: {name: a}\nkind: Node\n", TWICE),
    "a key of JSON twice": ('{"kind": "Pod", "metadata": {"name": "a"}, "kind": "Node"}', TWICE),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("file", FILES)
def test_a_hostile_file_is_refused_with_a_sentence(tmp_path: Path, reader: str, file: str) -> None:
    text, problem = FILES[file]
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=problem):
        READERS[reader](path)


BEGIN = '{"items": [\n'
END = '],\n"kind": "PodList", "apiVersion": "v1"}'

LARGE = {
    "YAML": ("kind: Pod\nmetadata:\n", "", "larger than"),
    "broken at the end": (BEGIN, '{"metadata": ' + END, ":1502: not JSON|larger than"),
    "cut at the end": (BEGIN, '{"metadata": {"name', "not JSON"),
    "text after the end": (BEGIN, "{}" + END + "\n\n!", ":1505: not JSON: the end"),
    "no comma": (BEGIN, '{} {"a": 1}' + END, ":1502: not JSON: , or ] expected"),
    "a key twice at the end": (BEGIN, '{"a": 1, "a": 2}' + END, "the key a is"),
    "two lists": (BEGIN, "{}" + '], "items": [{}' + END, "the key items is"),
    "levels at the end": (BEGIN, "[" * 70 + "]" * 70 + END, "nested"),
    "a long item": (BEGIN, f'"{"x" * 2 * MAX_OBJECT}"' + END, "larger than"),
    "an item of many values": (BEGIN, "[0" + ",0" * MAX_VALUES + "]" + END, "more"),
    "no UTF-8": (BEGIN, '"\udcff"' + END, "not UTF-8"),
    "no list": (
        BEGIN.replace("{", '{"kind": "Pod", '),
        "{}" + END.replace('"kind": "PodList", ', ""),
        "larger than",
    ),
    "much space": (
        BEGIN, "{}" + " " * 3 * MAX_OBJECT + END.replace("PodList", "List"), "no kind",
    ),
}  # fmt: skip
"""Begin, end and problem of files with 48 MB between."""


def large(path: Path, begin: str, end: str) -> Path:
    """Write a file with 1,500 pods of 32 kB between, or keys if it is YAML."""
    with path.open("w", errors="surrogateescape") as out:
        out.write(begin)
        for number in range(1500):
            if begin.startswith("{"):
                text = {"metadata": {"name": f"p{number}", "annotations": {"a": "x" * 32_000}}}
                out.write(f"{json.dumps(text)},\n")
            else:
                out.write(f"  k{number}: {'x' * 32_000}\n")
        out.write(end)
    return path


@pytest.mark.parametrize(
    ("reader", "file"),
    [
        *(("manifests", file) for file in LARGE),
        *((each, file) for each in READERS if each != "manifests" for file in [*LARGE][:2]),
    ],
)
def test_a_large_file_costs_no_more_than_its_limit_or_its_longest_object(
    tmp_path: Path, reader: str, file: str
) -> None:
    begin, end, problem = LARGE[file]
    path = large(tmp_path / "file", begin, end)
    tracemalloc.start()
    try:
        with pytest.raises(ConfigurationError, match=problem):
            READERS[reader](path)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert max(4 * MAX_OBJECT, 2 * MAX_YAML) < 50 << 20


POD = '{"kind": "Pod", "metadata": {"name": "é"}}'
NODE = POD.replace("Pod", "Node")

FORMS = {
    "JSON": POD,
    "JSON after JSON": f"{POD}\n{NODE}",
    "JSON between lines": f"---\n{POD}\n---\n{NODE}\n",
    "YAML in braces": "{kind: Pod, metadata: {name: é}}",
    "other ends of lines": "# a\r\n---\r\nkind: Pod\r\nmetadata:\r\n  name: é\r\n---\r\n",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("form", FORMS)
def test_what_kubectl_reads_is_read(tmp_path: Path, form: str, encoding: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(FORMS[form].encode(encoding))
    names = [obj["metadata"]["name"] for _, obj in read_located(path)]
    assert names == ["é"] * (1 + FORMS[form].count(NODE))


@pytest.mark.parametrize("form", ["file", "pipe", "utf-16"])
def test_a_long_list_is_read_one_by_one(tmp_path: Path, form: str) -> None:
    path = large(tmp_path / "file", BEGIN, '{"metadata": {"name": "\\ud83d\\ude00"}}' + END)
    content = path.read_bytes()
    if form == "utf-16":
        path.write_text(content.decode(), form)
    if piped := form == "pipe":
        path.unlink()
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(content,))
        writer.start()
    tracemalloc.start()
    try:
        names = [
            (obj["kind"], obj["apiVersion"], obj["metadata"]["name"])
            for _, obj in read_located(path)
        ]
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    if piped:
        writer.join(50)
    assert names == [("Pod", "v1", name) for name in [*(f"p{i}" for i in range(1500)), "😀"]]


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"kind": "Pod", "metadata": {"name": "a", "labels": {"a": "\\uD800"}}}')
    with pytest.raises(ConfigurationError, match="a text has half of a surrogate pair"):
        list(read_located(path))


def test_a_policy_of_ten_thousand_profiles_is_refused() -> None:
    profiles = "".join(f"- schedulerName: p{i}\n" for i in range(10_000))
    head = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nprofiles:\n"
    with pytest.raises(ConfigurationError, match=r"^p:3: profiles: 10000 profiles; at most 1000"):
        document.parse(head + profiles, "p")


def test_commands_that_look_into_a_kubeconfig_pass_a_hostile_one_by(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    for text, _ in FILES.values():
        path.write_text(text)
        assert current_namespace(path) == "default"
        assert not _is_ours(path)
