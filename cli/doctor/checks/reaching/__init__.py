"""Whether kube-scheduler reaches the extender.

Nothing is run where kube-scheduler runs: its image has no shell. Instead each step of the way is
looked at, and then what both ends report.
"""
