"""Renders the chart, and writes deploy/kustomize from it; `python -m tests.deploy.generate`."""
