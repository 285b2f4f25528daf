"""What is recorded of kube-scheduler's verdicts on configurations is still what it answers."""

import json

import pytest

from tools.build import scheduler_version
from tools.golden.configurations import RECORDED, refusals, text_of


@pytest.mark.timeout(600)  # it starts a program some eight hundred times
def test_the_recording_is_what_kube_scheduler_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = json.loads(RECORDED.read_text())
    versions = recording["versions"]
    version = scheduler_version() if scheduler_version() in versions else versions[-1]
    monkeypatch.setenv("SCHEDULER", version)
    cases = recording["cases"]
    answers = refusals([text_of(case) for case in cases])
    other = [
        case["case"]
        for case, refusal in zip(cases, answers, strict=True)
        if (not refusal) is not (version in case["starts"])
    ]
    assert other == [], "record it again with: python -m tools.golden.configurations"
