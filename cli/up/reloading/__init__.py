"""Takes plugin files into use when they change, without losing the cluster."""
