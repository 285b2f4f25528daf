"""Prints what a run found, draws it, and writes it into the documentation."""
