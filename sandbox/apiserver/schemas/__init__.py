"""The fields of each kind: from the Kubernetes client's models, or a custom definition."""
