"""Turns a recorded cycle into a test of the plugin that decided wrongly."""
