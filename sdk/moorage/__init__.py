"""Write Kubernetes scheduling plugins in Python."""
