"""Generates the tables of the documentation."""
