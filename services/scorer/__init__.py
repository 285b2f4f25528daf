"""Ranks the nodes that can run a pod."""
