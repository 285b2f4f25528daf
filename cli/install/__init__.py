"""`moorage install`: installs Moorage in a cluster from the kustomize files that come with it."""
