"""Renders the chart into deploy/install and deploy/files."""
