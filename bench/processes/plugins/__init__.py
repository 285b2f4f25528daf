"""Plugins that the bench runs in Moorage."""
