"""Writes the dashboards that the chart installs."""
