from dataclasses import dataclass
from pathlib import Path

import pytest

from moorage.errors import ConfigurationError
from moorage_host.tls.security import LOOPBACK, Security, securing
from tools.inprocess.certificates import authority, write_folder


@dataclass
class Settings:
    tls: Path | None = None
    tls_reload_interval: float = 10.0
    insecure: bool = False


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.3.4", "::1", "[::1]", "localhost", "unix:/x"])
def test_plain_text_stays_on_this_machine(host: str) -> None:
    LOOPBACK.require(f"listen on {host}", host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "filter", "localhost.example", ""])
async def test_plain_text_elsewhere_needs_an_option(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^cannot listen on x in plain text: .* --tls"):
        LOOPBACK.require("listen on x", host)
    Security(insecure=True).require("listen on x", host)
    async with securing(Settings(tls=write_folder(tmp_path, authority(), "me"))) as security:
        security.require("listen on x", host)


async def test_insecure_is_noted_and_excludes_certificates(tmp_path: Path) -> None:
    async with securing(Settings(insecure=True)) as security:
        assert "whoever reaches a port" in (security.note() or "")
    async with securing(Settings()) as security:
        assert security == LOOPBACK
        assert security.note() is None
    with pytest.raises(ConfigurationError, match="contradict"):
        async with securing(Settings(tls=tmp_path, insecure=True)):
            pass
