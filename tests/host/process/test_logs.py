import json
import sys

import pytest

from tests.host.rpc.support import run

PROGRAM = """
import logging, warnings, structlog
from moorage_host.process.logs import configure_logging
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


async def lines(level: str, form: str) -> list[str]:
    process = await run(sys.executable, "-c", PROGRAM.format(level=level, form=form))
    output, errors = await process.communicate()
    assert (process.returncode, output) == (0, b"")
    return errors.decode().splitlines()


@pytest.mark.parametrize("form", ["json", "auto"])
async def test_every_event_is_one_line_of_json_whoever_logs_it(form: str) -> None:
    events = [json.loads(line) for line in await lines("info", form)]
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
async def test_tracebacks_do_not_show_values_of_variables(form: str) -> None:
    text = "\n".join(await lines("info", form))
    assert "second line" in text
    assert "do not show'" not in text.replace('fail("do not show")', "")


async def test_the_level_is_the_least_that_is_shown() -> None:
    assert [json.loads(line)["event"] for line in await lines("error", "json")] == [
        "Failure",
        "Failure of a library",
    ]
    assert json.loads((await lines("debug", "json"))[0])["event"] == "Detail"


async def test_text_is_for_people() -> None:
    fact = (await lines("info", "text"))[0]
    assert "Fact" in fact
    assert "count=3" in fact


FORGER = r"""
import structlog
from moorage_host.process.logs import configure_logging
configure_logging("info", "text")
forged = "\n2026-01-01T00:00:00Z [info     ] All is well\x1b[2J\x00\u202e"
try:
    raise ValueError(forged)
except ValueError:
    structlog.get_logger().exception("Failure", text=forged)
structlog.get_logger().info("printed" + forged)
"""


async def test_no_text_can_look_like_another_line_or_change_the_terminal() -> None:
    process = await run(sys.executable, "-c", FORGER)
    _, errors = await process.communicate()
    output = errors.decode()
    assert output.count("All is well") == 3
    assert all(character.isprintable() for character in output.replace("\n", ""))
    assert not [line for line in output.splitlines() if line.startswith("2026-01-01")]
