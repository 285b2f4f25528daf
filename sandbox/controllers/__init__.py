"""Controllers of workloads: they make and delete the pods of Deployments, Jobs and their like.

They run in the process of the embedded API server, on its state, if `--run-controllers` is given.
Nobody replaces running pods: a changed template applies to new pods only.
"""

from sandbox.controllers.controllers import Controllers

__all__ = ["Controllers"]
