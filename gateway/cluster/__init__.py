"""The cluster as the gateway sees it: watches in, rows and generations out."""
