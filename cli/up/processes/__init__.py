"""Starts, watches, replaces and stops the processes of `moorage up`."""

from cli.up.processes.forking import Forked, ProcessFailedError, fork, start_here
from cli.up.processes.process import Process, Processes, free_ports

__all__ = [
    "Forked",
    "Process",
    "ProcessFailedError",
    "Processes",
    "fork",
    "free_ports",
    "start_here",
]
