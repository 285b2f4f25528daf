"""Speaks the extender protocol; owns the cluster state, the policy and the order of cycles."""

import moorage_host.rpc  # noqa: F401 - before grpc is imported, which reads what this sets
