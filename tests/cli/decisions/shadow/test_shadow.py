"""`moorage shadow`: what a gateway answers, in words."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web

from cli.decisions.shadow import Report, ask, show
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import Form
from moorage.errors import ConfigurationError
from tests.cli.shared.gateway.test_forwarding import serving

DISAGREEMENTS = [
    {
        "id": "1-2",
        "time": "2026-11-23T09:00:02Z",
        "namespace": "default",
        "pod": "web-2",
        "uid": "u2",
        "nodes": 3,
        "feasible": 3,
        "shadowFeasible": 3,
        "live": "n1",
        "shadow": "n2",
        "reasons": ["Room has weight 9 instead of 1: n1 10, n2 90"],
    },
    {
        "id": "1-1",
        "time": "2026-11-23T09:00:01Z",
        "namespace": "default",
        "pod": "web-1",
        "uid": "u1",
        "nodes": 3,
        "feasible": 3,
        "shadowFeasible": 2,
        "reasons": ["only the shadow rejects n3: Fit: full"],
    },
]
REPORT: dict[str, Any] = {
    "profile": "moorage",
    "since": "2026-11-23T08:00:00Z",
    "policyRevision": "abc",
    "maxShare": 0.1,
    "share": 0.0123,
    "agreement": 0.98,
    "compared": 100,
    "agreed": 98,
    "disagreedFilter": 1,
    "disagreedWinner": 1,
    "failed": 1,
    "lastFailure": "plugin Odd: no",
    "stopped": False,
    "skipped": {"busy": 3, "share": 0, "changed": 2, "live failed": 0},
    "reasons": [
        {"kind": "winner", "plugin": "Room", "reason": "has weight 9 instead of 1", "cycles": 1},
        {"kind": "filter", "plugin": "Fit", "reason": "only the shadow rejects: full", "cycles": 1},
    ],
    "disagreements": DISAGREEMENTS,
}


async def asked(answer: object, profile: str = "") -> Sequence[Report]:
    """Ask a gateway that answers this about its shadows."""

    async def shadow(_: web.Request) -> web.Response:
        return web.json_response(answer)

    app = web.Application()
    app.router.add_get("/shadow", shadow)
    async with serving(app) as port:
        return await ask(GatewayOptions(admin=f"http://127.0.0.1:{port}"), profile)


def shown(capsys: pytest.CaptureFixture[str], form: Form, *reports: Report) -> str:
    show(reports, form)
    return capsys.readouterr().out


def test_the_first_line_is_the_agreement_and_the_rest_the_evidence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shown(capsys, "text", REPORT).splitlines() == [
        "moorage: the shadow agrees in 98 % of 100 cycles",
        ("In 2 cycles it differs: in 1 on which nodes can run the pod, in 1 on the best node."),
        ("Not compared: 3 while another cycle came or ran, 2 as the state had changed meanwhile."),
        "The shadow failed in 1 cycle, last: plugin Odd: no.",
        (
            "It took 1.23 % of the time, of 10 % that it may; since 2026-11-23T08:00:00Z, "
            "policy abc."
        ),
        "",
        "CYCLES  DIFFERS IN  PLUGIN  REASON",
        "1       winner      Room    has weight 9 instead of 1",
        "1       filter      Fit     only the shadow rejects: full",
        "",
        "TIME                  POD            LIVE    SHADOW  WHY",
        (
            "2026-11-23T09:00:02Z  default/web-2  n1      n2      "
            "Room has weight 9 instead of 1: n1 10, n2 90"
        ),
        (
            "2026-11-23T09:00:01Z  default/web-1  3 of 3  2 of 3  "
            "only the shadow rejects n3: Fit: full"
        ),
    ]


def test_older_ones_are_left_out_unless_it_is_wide(capsys: pytest.CaptureFixture[str]) -> None:
    report = REPORT | {"disagreements": DISAGREEMENTS[:1] * 10 + DISAGREEMENTS[1:]}
    output = shown(capsys, "text", report)
    assert ("web-2" in output, "web-1" in output) == (True, False)
    assert output.splitlines()[-1] == "Older ones: 1; -o wide shows all"
    assert "web-1" in shown(capsys, "wide", report)


def test_before_the_first_comparison_there_is_no_percentage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    none: dict[str, Any] = {"reasons": [], "disagreements": [], "skipped": {}, "failed": 0}
    report = REPORT | none | {"compared": 0, "agreed": 0, "agreement": None}
    lines = shown(capsys, "text", report).splitlines()
    assert lines[0] == "moorage: nothing has been compared yet"
    assert len(lines) == 2


async def test_one_profile_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    other = REPORT | {"profile": "batch"}
    found = await asked({"profiles": [REPORT, other]}, "batch")
    assert msgspec.json.decode(shown(capsys, "json", *found)) == {"profiles": [other]}
    assert yaml.safe_load(shown(capsys, "yaml", *found)) == {"profiles": [other]}


@pytest.mark.parametrize(
    ("answer", "profile", "message"),
    [
        ({"profiles": []}, "", "no profile has a shadow: write `shadow` into one of the policy"),
        ({"profiles": [REPORT]}, "morage", "profile `morage` has no shadow, did you mean `moorage"),
        ({"profiles": [REPORT]}, "x", "profile `x` has no shadow; those with one: moorage"),
        ({"items": []}, "", "is it the gateway's admin port?"),
        ("text", "", "is it the gateway's admin port?"),
    ],
)
async def test_what_cannot_be_shown_has_a_next_step(
    answer: object, profile: str, message: str
) -> None:
    with pytest.raises((ConfigurationError, GatewayError), match=re.escape(message)):
        await asked(answer, profile)
