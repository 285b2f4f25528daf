"""A small Kubernetes API server, in memory: enough for kubectl, list/watch clients and schedulers.

`python -m sandbox.apiserver` runs it as a process; tests write `async with ApiServer() as api`.
"""

from sandbox.apiserver.faults import Fault, Faults
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.settings import Settings

__all__ = ["ApiServer", "Fault", "Faults", "Settings"]
