"""Measures Moorage beside extenders that people run, or would write, each with the same rule."""
