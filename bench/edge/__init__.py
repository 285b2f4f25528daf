"""Measures filter and prioritize at the HTTP edge, call by call."""
