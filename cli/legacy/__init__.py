"""`moorage convert-policy`: what the Policy of kube-scheduler before 1.23 is today."""
