"""Speaks the extender protocol; owns the cluster state, the policy and the order of cycles."""
