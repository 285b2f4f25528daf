"""Renders the chart, and writes deploy/kustomize from it; `python -m tools.manifests.generate`."""
