"""Speaks the extender protocol; owns the cluster state, the policy and the order of cycles."""

import moorage.rpc  # noqa: F401 - before grpc is imported, which reads what this sets
