"""Score plugins with the rules of kube-scheduler's own."""
