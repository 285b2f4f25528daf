"""Requests that a real kube-apiserver was sent are answered alike, see `tools.golden.requests`."""

import aiohttp
import pytest

from sandbox.apiserver import ApiServer
from tools.golden.requests import Object, cases, leaves, play

VERSION = "1.37"


@pytest.mark.parametrize("case", cases(VERSION), ids=lambda case: str(case["case"]))
async def test_the_answers_are_those_of_a_real_server(api: ApiServer, case: Object) -> None:
    async with aiohttp.ClientSession() as session:
        answers = await play(session, api.url, case["requests"])
    for asked, (status, body) in zip(case["requests"], answers, strict=True):
        found = leaves(body)
        for path in asked.get("unlike", ()):
            del found[path]  # known to be another value there, or none
        expected = (asked["status"], asked["answer"])
        assert (status, found) == expected, f"{asked['method']} {asked['path']}"
