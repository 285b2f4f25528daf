"""What is served: a table of resources as data, extended by custom resource definitions."""
