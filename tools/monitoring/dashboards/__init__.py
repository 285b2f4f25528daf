"""The dashboards, panel by panel."""
