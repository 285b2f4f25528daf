import asyncio
from datetime import timedelta
from pathlib import Path

from prometheus_client import REGISTRY

from moorage_host.tls.certificate import Certificates
from tools.inprocess.certificates import DAY, authority, write_folder

GOOD = authority()


def expiry(identity: str) -> float | None:
    name = "moorage_tls_certificate_expiry_timestamp_seconds"
    return REGISTRY.get_sample_value(name, {"identity": identity})


async def test_replaced_files_come_into_force_and_the_gauge_shows_their_end(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, GOOD, "moorage-filter")
    certificates = Certificates(folder)
    first = certificates.current
    assert expiry("moorage-filter") == first.not_after.timestamp()
    renewed = asyncio.create_task(certificates.renewed(first))
    certificates.reload()
    assert certificates.current is first
    write_folder(tmp_path, GOOD, "moorage-filter", life=7 * DAY)
    certificates.reload()
    assert await renewed is certificates.current is not first
    assert expiry("moorage-filter") == certificates.current.not_after.timestamp()
    assert certificates.note() is None


async def test_files_that_cannot_be_used_change_nothing_and_are_noted(tmp_path: Path) -> None:
    certificates = Certificates(write_folder(tmp_path, GOOD, "moorage-filter"))
    first, key = certificates.current, (tmp_path / "tls.key").read_bytes()
    (tmp_path / "tls.key").write_bytes(GOOD.key)
    certificates.reload()
    assert certificates.note() is None  # it may be being replaced
    certificates.reload()
    assert certificates.current is first
    assert "stays active: cannot use" in (certificates.note() or "")
    assert "does not match" in (certificates.note() or "")
    (tmp_path / "tls.key").write_bytes(key)
    certificates.reload()
    assert certificates.note() is None


async def test_a_renewal_that_is_overdue_is_noted(tmp_path: Path) -> None:
    write_folder(tmp_path, GOOD, "moorage-filter", begin=-DAY, life=timedelta(days=1.4))
    assert "less than a third of its life is left" in (Certificates(tmp_path).note() or "")
    write_folder(tmp_path, GOOD, "moorage-filter", begin=-DAY, life=timedelta(days=1.8))
    assert Certificates(tmp_path).note() is None
