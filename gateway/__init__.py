"""Speaks the kube-scheduler extender protocol and owns the cluster state, the policy and the order of cycles."""
