"""Records what a real kube-scheduler answers."""
