"""The edge that kube-scheduler calls: HTTP in front of `gateway.calls.Cycles`."""

from gateway.edge.app import make_app
from gateway.edge.server import Edge, run_edge
from gateway.settings.edge import EdgeSettings

__all__ = ["Edge", "EdgeSettings", "make_app", "run_edge"]
