"""What the filter and the score half of one of kube-scheduler's plugins share."""
