"""`moorage convert-policy`: the Policy of kube-scheduler before 1.23, and what it is today."""
