"""`moorage conformance`: what kube-scheduler would do with the answers of any extender."""
