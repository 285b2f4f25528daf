"""Starts, watches, replaces and stops the processes of `moorage up`."""

from cli.up.processes.keeping import Processes
from cli.up.processes.ports import free_ports
from cli.up.processes.process import Process, ProcessFailedError, python

__all__ = ["Process", "ProcessFailedError", "Processes", "free_ports", "python"]
