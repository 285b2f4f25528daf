"""The first line of `moorage explain` says so if the gateway was not reached."""

import pytest
from msgspec.structs import replace

from cli.decisions.explain_output import show
from gateway.decisions.explanation import PodEvidence
from gateway.decisions.why import explain

METADATA = {"namespace": "default", "name": "web", "uid": "u"}
SILENCE = "no gateway runs in namespace moorage"


@pytest.mark.parametrize(
    ("spec", "first"),
    [
        ({"schedulingGates": [{"name": "quota"}]}, f"Without the gateway: {SILENCE}"),
        ({}, f"default/web is pending: no scheduler has tried it: {SILENCE}"),
    ],
)
def test_a_gateway_that_was_not_reached_is_told_first(
    spec: dict[str, object], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = {"metadata": METADATA, "spec": spec}
    known = PodEvidence(pod=pod, why_no_attempt=SILENCE, asked=False)
    show(replace(explain(known), without=f"the gateway: {SILENCE}"), "text")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == first
    assert any(line.startswith("default/web is pending: ") for line in lines)
