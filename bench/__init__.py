"""Measures Moorage; see `make bench`."""
