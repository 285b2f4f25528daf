"""Records what a real kube-scheduler sends to an extender."""
