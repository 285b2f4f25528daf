"""Measures Moorage on larger clusters, under disturbances, and with more scorers."""
