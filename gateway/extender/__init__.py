"""The edge that kube-scheduler calls: HTTP in front of `gateway.calls.Cycles`."""

from gateway.extender.app import make_app
from gateway.extender.server import Edge, run_edge
from gateway.extender.settings import EdgeSettings

__all__ = ["Edge", "EdgeSettings", "make_app", "run_edge"]
