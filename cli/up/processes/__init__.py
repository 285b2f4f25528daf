"""Starts, watches, replaces and stops the processes of `moorage up`."""

from cli.up.processes.forking import Forked, ProcessFailedError, fork, start_here
from cli.up.processes.keeping import Processes
from cli.up.processes.ports import free_ports
from cli.up.processes.process import Process

__all__ = [
    "Forked",
    "Process",
    "ProcessFailedError",
    "Processes",
    "fork",
    "free_ports",
    "start_here",
]
