"""The KubeSchedulerConfiguration: what kube-scheduler starts with, and what it refuses."""
