"""A run on several workers of pytest-xdist ends, also if one of them is lost or reports nothing.

pytest-xdist's own schedule by groups waits for ever after a loss: it gives to the worker in the
lost one's place a group of which no test is left, or the last single test of one. But a worker
begins a test only when it knows the next one, or that there is none. It also runs the test that
ended the worker again. Here each worker has enough to go on, and what ended a worker has failed.

A process that a lost worker has left may hold the pipe to it, which hides the loss, and that of
whoever reads the output of the run. So this process adopts and ends them. Where no worker reports
anything for too long, all are ended; if that happens twice, the run is.
"""

import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling, Scheduling
from xdist.workermanage import WorkerController

from tests.limits import FOLDER
from tests.processes import children, kill_children, kill_with_children

ENOUGH = 3
"""Tests that a worker is given: one that it runs, the next, and one while it asks for more."""

PR_SET_CHILD_SUBREAPER = 36
LOOK_SECONDS = 0.2
STACKS_SECONDS = 1.0

REPLACING_SECONDS = 60.0
"""For how long after a loss a new process may be one that is about to become a worker."""

SILENCE = 2.0
"""How many times the limit of a test may pass, after that of those which run, without a report."""

LEAST_SILENCE = 30.0
"""Seconds in which a worker starts and collects the tests on a busy machine."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Watch the workers, if this process has any."""
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Workers(config))


class Groups(LoadGroupScheduling):
    """Groups of tests, each on one worker for as long as that lives."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a worker out; return the test that it did not finish, if it was lost.

        The other tests of its groups go to other workers.
        """
        groups = self.assigned_work.pop(node)
        left = [
            (group, test) for group in groups for test, done in groups[group].items() if not done
        ]
        for group, test in left[1:]:
            self.workqueue.setdefault(group, {})[test] = False
        for other in self.nodes:
            self._reschedule(other)
        return left[0][1] if left else None

    def _reschedule(self, node: WorkerController) -> None:
        """Give groups to a worker until it has enough, or let it end if none is left."""
        while (
            node in self.registered_collections
            and not node.shutting_down
            and self._pending_of(self.assigned_work[node]) < ENOUGH
        ):
            super()._reschedule(node)


class Workers:
    """The workers, and what became of them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._silence = max(LEAST_SILENCE, SILENCE * float(config.getini("timeout") or 0))
        self._folder: Path = config._tmp_path_factory.mktemp("stacks")  # type: ignore[attr-defined]
        self._running: dict[WorkerController, int] = {}
        self._all: set[str] = set()
        self._replacing = 0.0
        self._lost = False
        self._reported = time.time()
        self._ended_all = False
        self._ending = threading.Lock()
        self._over = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="workers", daemon=True)

    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: Producer
    ) -> Scheduling | None:
        """Take the place of `--dist loadgroup`."""
        return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Adopt what workers leave, and begin to watch."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._watching.start()

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Say to a worker where it writes stacks."""
        node.workerinput[FOLDER] = str(self._folder)
        self._running[node] = node.gateway._rinfo().pid
        self._all.add(str(self._running[node]))
        self._replacing = 0.0

    def pytest_testnodedown(self, node: WorkerController, error: object) -> None:
        """End what a lost worker has left, before another comes in its place."""
        with self._ending:
            self._running.pop(node, None)
            if error:
                self._lost = True
                self._end_adopted()
                self._replacing = time.time() + REPLACING_SECONDS
        self._note()

    def pytest_handlecrashitem(self, report: pytest.TestReport) -> None:
        """Add what a lost worker has written to the report of its test."""
        report.longrepr = f"{report.longrepr}\n{self._written(report.node)}"

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Let nothing outlive the run, and a run that has lost a worker fail."""
        yield
        self._over.set()
        if self._watching.is_alive():
            self._watching.join(20)
        kill_children()
        if self._lost and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _note(self) -> None:
        self._reported = time.time()

    def pytest_testnodeready(self) -> None:
        self._note()

    def pytest_xdist_node_collection_finished(self) -> None:
        self._note()

    def pytest_runtest_logstart(self) -> None:
        self._note()

    def pytest_runtest_logreport(self) -> None:
        self._note()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            with self._ending:
                running = dict(self._running)
                if self._replacing < time.time() and any(map(_has_ended, running.values())):
                    self._end_adopted()  # one may hold the pipe, for whose end xdist waits
            for pid in self._adopted():
                with suppress(ChildProcessError):
                    os.waitpid(int(pid), os.WNOHANG)
            until = max([self._reported, *map(self._limit, running)]) + self._silence
            if time.time() > until:
                self._end_silence(running)
                self._note()

    def _end_silence(self, running: dict[WorkerController, int]) -> None:
        """End all workers, each of which leaves its stacks; the second time, end the run."""
        print(f"\nNo worker reported anything for {self._silence:g} s", file=sys.__stderr__)
        faulthandler.dump_traceback(2)
        for pid in running.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
        time.sleep(STACKS_SECONDS)
        for node, pid in running.items():
            print(f"[{node.gateway.id}]\n{self._written(node)}", file=sys.__stderr__, flush=True)
            kill_with_children(str(pid))
        if self._ended_all:
            kill_children()
            os._exit(pytest.ExitCode.INTERNAL_ERROR)
        self._ended_all = True

    def _limit(self, node: WorkerController) -> float:
        """Return until when its test may run."""
        file = self._file(node)
        return file.stat().st_mtime if file.exists() else 0.0

    def _written(self, node: WorkerController) -> str:
        file = self._file(node)
        return file.read_text() if file.exists() else ""

    def _file(self, node: WorkerController) -> Path:
        return self._folder / str(node.gateway.id)

    def _adopted(self) -> set[str]:
        return set(children()) - self._all

    def _end_adopted(self) -> None:
        for pid in self._adopted():
            kill_with_children(pid)


def _has_ended(pid: int) -> bool:
    """Whether a child of this process has ended, without taking its exit code from others."""
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return True
