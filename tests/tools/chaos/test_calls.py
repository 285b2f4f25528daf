"""Failed calls are found in kube-scheduler's log, and nothing else is."""

import json
from pathlib import Path

from tools.chaos.oracle import FailedCalls


def test_calls_without_an_answer_are_found_once(tmp_path: Path) -> None:
    log = tmp_path / "kube-scheduler.log"
    errors = [
        'Post "http://127.0.0.1:1234/filter": read: connection reset by peer',
        "failed bind with extender at URL http://127.0.0.1:1234/bind, code 503",
        "checked again at the bind, AtMost rejects: node has its limited pods",
    ]
    lines = [json.dumps({"pod": "default/p", "error": error}) for error in errors]
    calls = FailedCalls(log)
    log.write_text("\n".join(lines) + "\n" + lines[0])
    assert calls.read() == ["filter: read: connection reset by peer", "bind: code 503"]
    log.write_text(log.read_text() + "\n")
    assert len(calls.read()) == 1
