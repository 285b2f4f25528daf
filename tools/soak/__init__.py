"""Steady churn; `make soak`."""
