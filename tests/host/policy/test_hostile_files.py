"""Files that are made to cost a lot are refused with a sentence, before they are taken in."""

import asyncio
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.legacy.policy import read_policy
from cli.shared.gateway.options import current_namespace
from cli.shared.manifests import read_located
from cli.up.kubeconfig import _is_ours
from moorage.errors import ConfigurationError
from moorage_host.kube import connect
from moorage_host.kube_scheduler.configuration.reading import load_configuration
from moorage_host.policy import document
from moorage_host.policy.yaml_costs import MAX_YAML

READERS: dict[str, Callable[[Path], object]] = {
    "policy": lambda path: document.parse(document.read(path), str(path)),
    "manifests": lambda path: list(read_located(path)),
    "kubeconfig": lambda path: asyncio.run(connect(path)),
    "KubeSchedulerConfiguration": lambda path: load_configuration(path),
    "Policy of kube-scheduler": read_policy,
}

TWICE = "is there twice|is of kind Pod"
"""Or the kind is refused first, where only one is expected."""

FILES = {
    "aliases that multiply": (
        "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}' if i else 'x'] * 9)}]\n" for i in range(9)),
        "aliases make more than",
    ),
    "an alias within itself": ("a: &a\n  b: *a\n", "within what it names|undefined alias"),
    "deep flow": (f"a: {'[' * 10_000}{']' * 10_000}", "nested"),
    "deep block": ("".join(f"{' ' * i}a:\n" for i in range(1000)), "nested"),
    "deep JSON": ('{"a": ' + "[" * 10_000 + "]" * 10_000 + "}", "nested|JSON"),
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


@pytest.mark.parametrize("reader", READERS)
def test_no_more_is_read_of_a_large_file_than_its_limit(tmp_path: Path, reader: str) -> None:
    """A file of 100 MB: what is allocated meanwhile is that of the limit."""
    path = tmp_path / "file"
    with path.open("wb") as out:
        out.write(b"kind: Pod\nmetadata:\n")
        for _ in range(100):
            out.write((b" " + b"a" * 99 + b": b\n") * 10_000)
    tracemalloc.start()
    try:
        with pytest.raises(ConfigurationError, match="larger than"):
            READERS[reader](path)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_YAML
    finally:
        tracemalloc.stop()


def test_a_policy_of_ten_thousand_profiles_is_refused() -> None:
    profiles = "".join(f"- schedulerName: p{i}\n" for i in range(10_000))
    head = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nprofiles:\n"
    with pytest.raises(ConfigurationError, match=r"^p:3: profiles: 10000 profiles; at most 1000"):
        document.parse(head + profiles, "p")


def test_aliases_that_do_not_multiply_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("kind: Pod\nmetadata: {name: a, labels: &l {app: x}, annotations: *l}\n")
    ((_, pod),) = read_located(path)
    assert pod["metadata"]["annotations"] == {"app": "x"}


def test_commands_that_look_into_a_kubeconfig_pass_a_hostile_one_by(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    for text, _ in FILES.values():
        path.write_text(text)
        assert current_namespace(path) == "default"
        assert not _is_ours(text.encode())
