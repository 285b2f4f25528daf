"""What plugins print is in the log, under the name of the plugin."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from moorage import FilterPlugin, Node, Pod, Rejection
from moorage.testing import make_node, make_pod, run_filter, running
from moorage_host.plugins.registry import Registry
from moorage_host.process.printed import MAX_LINE, printed_to_log
from tests.passing import Passes


def helper(text: str) -> None:
    print(text)  # noqa: T201


class Prints(FilterPlugin):
    """Prints a word for each node."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        print("node", node.name, end="")  # noqa: T201
        helper("!")
        self.log.info("logged")
        return None


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.name, record.getMessage()) for record in caplog.records]


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_a_plugin_prints_under_its_name(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with printed_to_log():
        run_filter(Prints(), make_pod(), make_node("a"), make_node("b"))
    assert lines(caplog) == [
        ("Prints", "node a!"),
        ("Prints", "logged"),
        ("Prints", "node b!"),
        ("Prints", "logged"),
    ]
    assert capsys.readouterr().out == ""


async def test_background_work_prints_under_the_plugins_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Works(Passes):
        async def start(self) -> None:
            self.background(self._work)

        async def _work(self) -> None:
            await asyncio.sleep(0)
            helper("working")

    with printed_to_log():
        async with running(Works()), asyncio.timeout(30):
            while not caplog.records:  # noqa: ASYNC110 - the log has no event
                await asyncio.sleep(0)
    assert lines(caplog) == [("Works", "working")]


def test_a_file_prints_under_its_own_name_while_it_is_loaded(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file = tmp_path / "chatty.py"
    file.write_text(
        "from moorage import *\nprint('two\\nlines\\n')\nclass P(FilterPlugin):\n"
        "    def filter_node(self, pod, node): ...\n"
    )
    with printed_to_log():
        Registry(FilterPlugin).add_path(file)
    assert lines(caplog) == [("chatty", "two"), ("chatty", "lines")]


def test_long_lines_are_cut_and_threads_may_print(caplog: pytest.LogCaptureFixture) -> None:
    with printed_to_log():
        thread = threading.Thread(target=helper, args=("x" * 10 * MAX_LINE,))
        thread.start()
        thread.join(20)
        print("y" * 10 * MAX_LINE, end="")  # noqa: T201
    assert lines(caplog) == [(__name__, "x" * MAX_LINE), (__name__, "y" * MAX_LINE)]
