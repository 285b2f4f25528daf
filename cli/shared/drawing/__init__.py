"""Draws results as SVG: for commands, and for the pages of `bench`."""
