import json
import subprocess
import sys

import pytest

PROGRAM = """
import logging, warnings, structlog
from moorage.rpc.logs import configure_logging
configure_logging({level!r}, {form!r})
def fail(secret):
    raise ValueError("first line\\nsecond line")
with structlog.contextvars.bound_contextvars(rpc="a/b"):
    log = structlog.get_logger()
    log.debug("Detail")
    log.info("Fact", count=3, path=object)
    logging.getLogger("lib").warning("Of a library: %s", "x")
    warnings.warn("careful")
    try:
        fail("do not show")
    except ValueError:
        log.exception("Failure")
        logging.getLogger("lib").exception("Failure of a library")
"""


def lines(level: str, form: str) -> list[str]:
    program = PROGRAM.format(level=level, form=form)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b""
    return done.stderr.decode().splitlines()


@pytest.mark.parametrize("form", ["json", "auto"])
def test_every_event_is_one_line_of_json_whoever_logs_it(form: str) -> None:
    events = [json.loads(line) for line in lines("info", form)]
    assert [e["level"] for e in events] == ["info", "warning", "warning", "error", "error"]
    assert {e["rpc"] for e in events} == {"a/b"}
    assert all(e["timestamp"].endswith("Z") for e in events)
    fact, library, warned, failure, library_failure = events
    assert (fact["event"], fact["count"]) == ("Fact", 3)
    assert (library["event"], library["logger"]) == ("Of a library: x", "lib")
    assert "careful" in warned["event"]
    assert "second line" in failure["exception"]
    assert "second line" in library_failure["exception"]


@pytest.mark.parametrize("form", ["json", "text"])
def test_tracebacks_do_not_show_values_of_variables(form: str) -> None:
    text = "\n".join(lines("info", form))
    assert "second line" in text
    assert "do not show'" not in text.replace('fail("do not show")', "")


def test_the_level_is_the_least_that_is_shown() -> None:
    assert [json.loads(line)["event"] for line in lines("error", "json")] == [
        "Failure",
        "Failure of a library",
    ]
    assert json.loads(lines("debug", "json")[0])["event"] == "Detail"


def test_text_is_for_people() -> None:
    fact = lines("info", "text")[0]
    assert "Fact" in fact
    assert "count=3" in fact
