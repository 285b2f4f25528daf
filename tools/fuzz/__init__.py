"""Feeds mutated input to what reads it; `make fuzz`."""
