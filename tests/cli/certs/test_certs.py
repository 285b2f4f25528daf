import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from cli.certs.certificates import keep_certificates
from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import read_certificate
from tests.cli.support import invoked
from tests.needs import needed

LIVE = {"gateway", "filter", "scorer", "binder", "annotator"}
SERVICES = LIVE | {"shadow-filter", "shadow-scorer"}
FOLDERS = SERVICES | {"scheduler", "operator", "metrics"}


def certs(*options: str) -> Result:
    done = invoked("certs", *options)
    assert done.exit_code == 0, done.output
    return done


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_each_identity_gets_a_folder_for_tls_that_only_its_owner_reads(tmp_path: Path) -> None:
    root = tmp_path / "certs"
    certs(f"--dir={root}")
    assert {path.name for path in root.iterdir()} == FOLDERS | {"ca"}
    for folder in FOLDERS:
        found = read_certificate(root / folder)
        assert found.names[0] == f"moorage-{folder}"
        assert ("localhost" in found.names) is (folder in SERVICES)
    assert "gateway.moorage.svc" in read_certificate(root / "gateway").names
    for path in (root, *root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_openssl_accepts_them(tmp_path: Path) -> None:
    openssl = needed("openssl")
    certs(f"--dir={tmp_path}")
    for folder in FOLDERS:
        files = (str(tmp_path / "ca/ca.crt"), str(tmp_path / folder / "tls.crt"))
        for purpose in ("sslserver", "sslclient"):
            command = [openssl, "verify", "-x509_strict", "-purpose", purpose, "-CAfile", *files]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, done.stderr


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    certs(f"--dir={tmp_path}")
    before = contents(tmp_path)
    assert "gateway: kept" in certs(f"--dir={tmp_path}").output
    assert contents(tmp_path) == before


def test_what_is_near_its_end_or_lacks_a_name_is_renewed_by_the_same_authority(
    tmp_path: Path,
) -> None:
    keep_certificates(tmp_path, life=timedelta(minutes=2))
    before = contents(tmp_path)
    certs(f"--dir={tmp_path}")  # the certificates begin five minutes ago
    after = contents(tmp_path)
    assert after["ca/ca.crt"] == before["ca/ca.crt"]
    for folder in FOLDERS:
        assert after[f"{folder}/tls.crt"] != before[f"{folder}/tls.crt"]
        left = read_certificate(tmp_path / folder).not_after - datetime.now(UTC)
        assert timedelta(days=6) < left <= timedelta(days=7)
    certs(f"--dir={tmp_path}", "--secrets=elsewhere")
    named = contents(tmp_path)
    changed = {name.partition("/")[0] for name in named if named[name] != after[name]}
    assert changed == SERVICES


def test_secrets_are_what_the_deployments_mount(tmp_path: Path) -> None:
    done = certs(f"--dir={tmp_path}", "--secrets=elsewhere")
    manifests = list(yaml.safe_load_all(done.stdout))
    assert {each["metadata"]["name"] for each in manifests} == {f"{f}-tls" for f in FOLDERS}
    for each in manifests:
        assert each["kind"] == "Secret"
        assert each["type"] == "kubernetes.io/tls"
        assert each["metadata"]["namespace"] == "elsewhere"
        assert set(each["data"]) == {"tls.crt", "tls.key", "ca.crt"}
    assert "gateway.elsewhere.svc" in read_certificate(tmp_path / "gateway").names


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [("ca.crt", b"x", "PEM"), ("ca.key", b"", "PEM"), ("ca.key", None, "another one's")],
)
def test_an_authority_that_cannot_be_used_is_named(
    tmp_path: Path, file: str, content: bytes | None, problem: str
) -> None:
    keep_certificates(tmp_path)
    other = tmp_path / "gateway" / "tls.key"
    (tmp_path / "ca" / file).write_bytes(other.read_bytes() if content is None else content)
    with pytest.raises(ConfigurationError, match=rf"authority in .*/ca: .*{problem}.*; without"):
        keep_certificates(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ConfigurationError, match=r"cannot write certificates in .*/file/certs: not"
    ):
        keep_certificates(tmp_path / "file" / "certs")
