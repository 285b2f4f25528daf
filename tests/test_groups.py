"""Tests that share a fixture or a file run on one worker of pytest: what is costly starts once."""

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="without pytest-xdist")
def test_groups_are_known_to_what_distributes_tests(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@tests/test_groups.py")
