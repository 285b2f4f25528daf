"""Replicas are found by name."""

import asyncio
import socket
from typing import Any

import pytest

from gateway.replicas.dns import Resolver


async def test_a_name_that_cannot_be_looked_up_keeps_its_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {"filters": ["10.0.0.1", "10.0.0.2"], "others": ["fd00::1"]}

    async def lookup(_: object, host: str, port: str, **kwargs: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(0, 0, 0, "", (each, int(port))) for each in known[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    resolver = Resolver(("filters:50051", "dns:///others:50052"))
    everything = {"10.0.0.1:50051", "10.0.0.2:50051", "[fd00::1]:50052"}
    assert await resolver.addresses() == everything
    assert resolver.problem == ""

    del known["filters"]
    assert await resolver.addresses() == everything
    assert "cannot resolve filters:50051: Temporary failure" in resolver.problem

    known["filters"] = ["10.0.0.2"]
    assert await resolver.addresses() == {"10.0.0.2:50051", "[fd00::1]:50052"}
    assert resolver.problem == ""
