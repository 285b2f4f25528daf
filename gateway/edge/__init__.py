"""The edge that kube-scheduler calls: HTTP in front of `gateway.cycle.Cycles`.

edge        answers the four verbs, from request to response
paths       which verb and which plugin answer at a path
schedulers  whose pods each caller may place
requests    reads bodies, only as far as they are needed; any casing
answers     writes bodies with Go's exact field names, and responses that keep its connections open
server      listens, drains
"""

from gateway.edge.edge import Edge
from gateway.edge.server import run_edge
from gateway.settings import EdgeSettings

__all__ = ["Edge", "EdgeSettings", "run_edge"]
