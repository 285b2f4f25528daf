"""Rules out the nodes that cannot run a pod."""
