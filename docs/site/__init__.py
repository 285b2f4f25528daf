"""Sphinx extensions: what the documentation site has beyond the Markdown that GitHub shows."""
