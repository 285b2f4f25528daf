"""The embedded cluster: a small API server and a stand-in for kube-scheduler."""
