"""The kubeconfig's path is the same from run to run, and nobody's file is lost."""

from pathlib import Path

import pytest
import yaml

from cli.shared.gateway.options import embedded_admin
from cli.up.kubeconfig import KubeconfigFile, default_path, reserve
from moorage.errors import ConfigurationError

API = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


def test_it_is_written_for_its_owner_and_removed() -> None:
    file = reserve(None)
    assert file
    file.write(API)
    assert file.path == default_path()
    (cluster,) = yaml.safe_load(file.path.read_text())["clusters"]
    assert cluster["cluster"] == {"server": API}
    assert file.path.stat().st_mode & 0o077 == 0
    file.remove()
    assert not file.path.exists()


def test_commands_find_the_gateway_of_the_cluster_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = KubeconfigFile(tmp_path / "kubeconfig")
    file.write(API, "http://127.0.0.1:2")
    assert embedded_admin(file.path) == "http://127.0.0.1:2"
    monkeypatch.setenv("KUBECONFIG", f"{file.path}:{tmp_path}/other")
    assert embedded_admin(None) == "http://127.0.0.1:2"
    file.write(API)
    assert embedded_admin(None) == ""
    file.remove()
    assert embedded_admin(None) == ""  # what connects to the API server reports that
    for content in ("{", "- a", "clusters: []", "\0"):
        file.path.write_text(content)
        assert embedded_admin(None) == ""


def test_what_a_run_that_was_killed_left_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    file = KubeconfigFile(path)
    file.write(API)
    left = yaml.safe_load(path.read_text())
    left["contexts"][0]["context"]["namespace"] = "web"  # as `kubectl config set-context` does
    file.remove()
    path.write_text(yaml.safe_dump(left))
    again = KubeconfigFile(path)
    again.write("http://127.0.0.1:2")
    assert "namespace" not in path.read_text()
    again.remove()


@pytest.mark.parametrize(
    "content", ["hello", "{", "clusters: [{name: prod}]", "clusters: []", "- a", b"\xff\xfe"]
)
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(
    tmp_path: Path, content: str | bytes
) -> None:
    path = tmp_path / "config"
    written = content.encode() if isinstance(content, str) else content
    path.write_bytes(written)
    with pytest.raises(ConfigurationError, match=r"was not written by `moorage up`.*name another"):
        reserve(path)
    assert path.read_bytes() == written


def test_another_run_keeps_its_file(tmp_path: Path) -> None:
    first = reserve(None)
    assert first
    assert reserve(None) is None
    with pytest.raises(ConfigurationError, match="belongs to another `moorage up` that runs now"):
        reserve(default_path())
    first.remove()
    second = reserve(None)
    assert second
    second.remove()


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot write .*: Is a directory"):
        reserve(tmp_path)
