"""Checks against the last release, and notes of the next."""
