"""`moorage shadow`: what a gateway answers, in words."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from cli.main import main

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


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """Answer every request on a port of this machine; give its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/shadow" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(20)


def run(profiles: object, *arguments: str) -> Result:
    body = msgspec.json.encode({"profiles": profiles} if isinstance(profiles, list) else profiles)
    with answering(body) as url:
        return CliRunner().invoke(main, ["shadow", "--admin", url, *arguments])


def test_the_first_line_is_the_agreement_and_the_rest_the_evidence() -> None:
    result = run([REPORT])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
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


def test_older_ones_are_left_out_unless_it_is_wide() -> None:
    report = REPORT | {"disagreements": DISAGREEMENTS[:1] * 10 + DISAGREEMENTS[1:]}
    output = run([report]).output
    assert "web-2" in output
    assert "web-1" not in output
    assert output.splitlines()[-1] == "Older ones: 1; -o wide shows all"
    assert "web-1" in run([report], "-o", "wide").output


def test_before_the_first_comparison_there_is_no_percentage() -> None:
    none: dict[str, Any] = {"reasons": [], "disagreements": [], "skipped": {}, "failed": 0}
    report = REPORT | none | {"compared": 0, "agreed": 0, "agreement": None}
    lines = run([report]).output.splitlines()
    assert lines[0] == "moorage: nothing has been compared yet"
    assert len(lines) == 2


def test_one_profile_and_json() -> None:
    other = REPORT | {"profile": "batch"}
    result = run([REPORT, other], "batch", "-o", "json")
    assert msgspec.json.decode(result.stdout) == {"profiles": [other]}
    result = run([REPORT, other], "batch", "-o", "yaml")
    assert yaml.safe_load(result.stdout) == {"profiles": [other]}


@pytest.mark.parametrize(
    ("answer", "arguments", "message"),
    [
        ([], (), "no profile has a shadow: write `shadow` into one of the policy"),
        ([REPORT], ("morage",), "profile `morage` has no shadow, did you mean `moorage`?"),
        ([REPORT], ("x",), "profile `x` has no shadow; those with one: moorage"),
        ({"items": []}, (), "is it the gateway's admin port?"),
        ("text", (), "is it the gateway's admin port?"),
    ],
)
def test_what_cannot_be_shown_has_a_next_step(
    answer: object, arguments: tuple[str, ...], message: str
) -> None:
    result = run(answer, *arguments)
    assert result.exit_code != 0
    assert message in result.output
