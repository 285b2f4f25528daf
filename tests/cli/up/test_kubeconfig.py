"""The kubeconfig's path is the same from run to run, and nobody's file is lost."""

from pathlib import Path

import pytest
import yaml

from cli.shared.gateway.options import embedded_admin
from cli.up.kubeconfig import default_path, kubeconfig, reserved
from moorage.errors import ConfigurationError

API = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


def write(path: Path, admin: str = "") -> None:
    path.write_text(yaml.safe_dump(kubeconfig(API, admin)))


def test_it_is_its_owner_s_and_removed() -> None:
    with reserved(None) as path:
        assert path
        write(path)
        assert path == default_path()
        (cluster,) = yaml.safe_load(path.read_text())["clusters"]
        assert cluster["cluster"] == {"server": API}
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.exists()


def test_commands_find_the_gateway_of_the_cluster_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kubeconfig"
    write(path, "http://127.0.0.1:2")
    assert embedded_admin(path) == "http://127.0.0.1:2"
    monkeypatch.setenv("KUBECONFIG", f"{path}:{tmp_path}/other")
    assert embedded_admin(None) == "http://127.0.0.1:2"
    write(path)
    assert embedded_admin(None) == ""
    path.unlink()
    assert embedded_admin(None) == ""  # what connects to the API server reports that
    for content in ("{", "- a", "clusters: []", "\0"):
        path.write_text(content)
        assert embedded_admin(None) == ""


def test_what_a_run_that_was_killed_left_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    left = kubeconfig(API)
    left["contexts"][0]["context"]["namespace"] = "web"  # as `kubectl config set-context` does
    path.write_text(yaml.safe_dump(left))
    with reserved(path) as taken:
        assert taken == path


@pytest.mark.parametrize(
    "content", ["hello", "{", "clusters: [{name: prod}]", "clusters: []", "- a", b"\xff\xfe"]
)
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(
    tmp_path: Path, content: str | bytes
) -> None:
    path = tmp_path / "config"
    written = content.encode() if isinstance(content, str) else content
    path.write_bytes(written)
    refused = pytest.raises(ConfigurationError, match=r"was not written by `moorage up`.*another")
    with refused, reserved(path):
        pass
    assert path.read_bytes() == written


def test_another_run_keeps_its_file() -> None:
    with reserved(None) as first:
        with reserved(None) as second:
            assert (first, second) == (default_path(), None)
        refused = pytest.raises(ConfigurationError, match="belongs to another `moorage up` that")
        with refused, reserved(default_path()):
            pass
    with reserved(None) as again:
        assert again


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    refused = pytest.raises(ConfigurationError, match=r"cannot write .*: Is a directory")
    with refused, reserved(tmp_path):
        pass
