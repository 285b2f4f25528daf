"""Whose a bearer token is, and what its user may do."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from moorage.errors import ConfigurationError
from sandbox.apiserver import ApiServer, Settings
from tests.sandbox.apiserver.support import Http

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[Http]:
    file = tmp_path / "accounts.csv"
    file.write_text('t0k3n,ann,7,"team, others"\nother,bob,8\n\n')
    async with (
        ApiServer(Settings(token_auth_file=file)) as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        yield Http(session)


async def test_tokens_in_the_file_are_known(http: Http) -> None:
    status = (await http.create(TOKENS, {"spec": {"token": "t0k3n"}}))["status"]
    groups = ["team", "others", "system:authenticated"]
    assert status == {
        "authenticated": True,
        "user": {"username": "ann", "uid": "7", "groups": groups},
    }
    for unknown in ("t0k3", "ann"):
        status = (await http.create(TOKENS, {"spec": {"token": unknown}}))["status"]
        assert status["authenticated"] is False
    assert (await http.send("POST", TOKENS, {"spec": {}})).code == 422


@pytest.mark.parametrize("line", ["token,user", ",user,1", 'token,user,1,"a"b', "a,b,c,d,e"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "accounts.csv"
    file.write_text(f"t0k3n,ann,7\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"accounts\.csv") as raised:
        ApiServer(Settings(token_auth_file=file))
    assert "t0k3n" not in str(raised.value)
