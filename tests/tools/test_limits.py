"""A run of the tests ends, whatever a test does; its report names the test and shows its stacks."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
PASSES = "def test_passes(): pass\n"
SUITE = {
    "test_waits.py": "import threading\ndef test_waits():\n    threading.Event().wait()\n" + PASSES,
    "test_awaits.py": "import asyncio\n"
    "async def inner():\n    await asyncio.Event().wait()\n"
    "async def test_awaits():\n    await inner()\n" + PASSES,
    "test_goes_on.py": "import asyncio\n"
    "async def test_goes_on():\n    print('before that')\n    while True:\n"
    "        try:\n            await asyncio.Event().wait()\n"
    "        except asyncio.CancelledError:\n            pass\n" + PASSES,
    "test_teardown.py": "import threading, pytest\n"
    "@pytest.fixture\ndef waits():\n    yield\n    threading.Event().wait()\n"
    "def test_teardown(waits):\n    assert False\n" + PASSES,
    "test_native.py": "import ctypes\n"
    "def test_native():\n    ctypes.PyDLL(None).sleep(1000)  # keeps the interpreter's lock\n",
    "test_exits.py": "import os\n" + PASSES + "def test_exits(): os._exit(0)\n",
    "test_leaves.py": "import os, time\n"
    "def test_leaves():\n    if os.fork() == 0:\n        time.sleep(1000)\n    os._exit(0)\n"
    + PASSES,
    "test_stops.py": "import os, signal\ndef test_stops(): os.kill(os.getpid(), signal.SIGSTOP)\n",
    **{f"test_alone_{number}.py": PASSES for number in range(8)},
}
"""Files of tests, each a group."""

STACKS = {
    "test_waits": r"> *threading.Event\(\).wait\(\)(?s:.*)test_waits overran its limit of 2 s",
    "test_awaits": r"> *await inner\(\)(?s:.*)await asyncio.Event\(\).wait\(\)(?s:.*)"
    r"CancelledError: test_awaits.py::test_awaits\S* overran its limit of 2 s",
    "test_goes_on": r"test_goes_on\S* overran its limit of 2 s, and did not end(?s:.*)--- task "
    r"(?s:.*)await asyncio.Event\(\).wait\(\)(?s:.*)captured stdout\nbefore that",
    "test_teardown": r"assert False(?s:.*)threading.Event\(\).wait\(\)(?s:.*)overran",
    "test_native": r"Timeout(?s:.*)test_native.py\", line 3 in test_native",
    "test_exits": "",
    "test_leaves": "",
    "test_stops": "",
}
"""The tests that fail, and what the report shows of each."""

CONFTEST = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.name))
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Run the suite on two workers; return the failures, by the names of the tests."""
    folder = tmp_path_factory.mktemp("suite")
    for name, text in {**SUITE, "conftest.py": CONFTEST}.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\ntimeout = 2\n")
    environment = {name: os.environ[name] for name in os.environ if "PYTEST" not in name}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "sdk")))
    options = ("-n2", "--dist=loadgroup", "-ptests.limits", "-ptests.workers", "--junitxml=r.xml")
    run = subprocess.run(  # to the end of its output: no process that it leaves holds that
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=250,
        check=False,
    )
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout
    cases = list(ET.parse(folder / "r.xml").iter("testcase"))
    passed = [case for case in cases if not len(case)]
    assert len(passed) == sum(text.count(PASSES) for text in SUITE.values()), run.stdout
    failed: dict[str, str] = {}
    for case in cases:
        if len(case):
            name = re.sub(r".*::|@.*", "", str(case.get("name")))
            failed[name] = failed.get(name, "") + "".join(case.itertext())
    return failed


def test_each_is_named_and_shown(reports: Mapping[str, str]) -> None:
    assert reports.keys() == STACKS.keys()
    for name, pattern in STACKS.items():
        assert re.search(pattern, reports[name]), f"{name}: {reports[name]}"
