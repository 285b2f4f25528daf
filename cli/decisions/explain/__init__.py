"""`moorage explain`: why a pod is where it is, or nowhere, from the API server and the gateway."""
